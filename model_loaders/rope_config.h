// The rotary embedding of config.json, in the spelling of transformers 4 and of transformers 5.
//
//   v4: "rope_theta": 500000.0, "rope_scaling": null | {"rope_type" or "type": "llama3", ...}
//       "rope_local_base_freq": 10000.0 of layers that see a window, in families that tell them
//       apart; rope_scaling is not theirs
//   v5: "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, ...}
//       "rope_parameters": {"full_attention": {...}, "sliding_attention": {...}}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/json.h"
#include "model_loaders/model_config.h"
#include "model_loaders/model_family.h"

namespace tessera {

// Largest length of a context that config.json may name; keeps products of lengths in int64_t.
constexpr int64_t kMaxContextTokens = int64_t{1} << 30;

// What config.json says about the layers of one type.
struct RopeConfig {
  RopeTable table;
  RotaryLayout layout;
  QueryScalingSpec query_scaling;  // BlockSpec::query_scaling
};

// Of `sizes`, head_dim and max_position_embeddings are read. A kind that is not known, a parameter
// that is missing, unknown or contradicts another is an Error naming the field: wrong frequencies
// give a model that talks nonsense only after a while. Contradictions that files of real tools have
// and transformers 5 resolves are resolved as it does, with a warning.
RopeConfig read_rope_config(const JsonObject& json, std::string_view layer_type,
                            const ModelFamily& family, const ModelConfig& sizes,
                            std::vector<std::string>& warnings);

}  // namespace tessera
