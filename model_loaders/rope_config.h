// The rotary embedding of config.json, in the spelling of transformers 4 and of transformers 5.
//
//   v4: "rope_theta": 500000.0, "rope_scaling": null | {"rope_type" or "type": "llama3", ...}
//   v5: "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, ...}
//       "rope_parameters": {"full_attention": {...}, "sliding_attention": {...}}
#pragma once

#include <cstdint>
#include <string_view>

#include "model_loaders/json.h"
#include "model_loaders/model_config.h"

namespace tessera {

// Largest length of a context that config.json may name; keeps products of lengths in int64_t.
constexpr int64_t kMaxContextTokens = int64_t{1} << 30;

// `layer_type` selects among parameters given per layer type. `default_theta` is the family's. A
// kind that is not known, a parameter that is missing, unknown or contradicts another is an Error
// naming the field: wrong frequencies give a model that talks nonsense only after a while.
RopeTable read_rope_table(const JsonObject& config, std::string_view layer_type,
                          double default_theta);

}  // namespace tessera
