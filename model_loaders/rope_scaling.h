// The parameters by which config.json stretches rotary frequencies.
#pragma once

#include <cstdint>

#include "model_loaders/json.h"
#include "model_loaders/rope_table.h"

namespace tessera {

// What the parameters of every kind may refer to.
struct RopeScalingContext {
  // config.json itself, which may hold original_max_position_embeddings too.
  const JsonObject& config;
  int64_t max_position_embeddings = 0;
  int64_t default_original_context = 0;  // 0: none
  int64_t rotary_dim = 0;
  // Among parameters given per layer type, transformers does not see `truncate` (5.23).
  bool ignores_truncate = false;
};

// Reads the kind and its parameters. Throws Error as read_rope_table does.
RopeScaling read_rope_scaling(const JsonObject& rope, const RopeScalingContext& context);

// Whether the parameters are of kind "proportional", which reads partial_rotary_factor itself.
bool is_proportional_rope(const JsonObject& rope);

}  // namespace tessera
