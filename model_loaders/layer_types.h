// The "layer_types" of config.json: which layers see the whole context and which a window of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "model_loaders/json.h"

namespace tessera {

constexpr std::string_view kFullAttention = "full_attention";
constexpr std::string_view kSlidingAttention = "sliding_attention";

bool is_layer_type(std::string_view name);

// The one type that all layers have, or nothing when the config does not say. Throws Error when the
// list is not one entry per layer, names an unknown type or mixes types.
std::optional<std::string_view> read_layer_type(const JsonObject& config, int64_t num_layers);

}  // namespace tessera
