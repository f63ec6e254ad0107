// What config.json says about each layer: the window that it sees and how it rotates.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model_loaders/json.h"
#include "model_loaders/model_config.h"
#include "model_loaders/model_family.h"

namespace tessera {

constexpr std::string_view kFullAttention = "full_attention";
constexpr std::string_view kSlidingAttention = "sliding_attention";

bool is_layer_type(std::string_view name);

// The index of the table in config.rope_tables, which gets it if it has none that is equal.
int64_t rope_table_index(const RopeTable& table, ModelConfig& config);

// Fills block.layers, block.query_scaling, rope_tables and rotary from layer_types, else from the
// family's rules; the sizes of `config` are filled in. Throws Error when layer_types is not one
// entry per layer, names an unknown type or a window that there is not. Warnings are those of
// read_rope_config().
void read_layers(const JsonObject& json, const ModelFamily& family, ModelConfig& config,
                 std::vector<std::string>& warnings);

}  // namespace tessera
