// Blocks that differ from Llama's in one field, and which fields each way of computing blocks
// claims to compute: whatever is listed here is compared with a reference, and every other field
// has to be declined (block_paths_test).
#pragma once

#include <string_view>
#include <type_traits>
#include <vector>

#include "kernels/block_fields.h"

namespace tessera {

// Gives a field a value that is not its default.
inline void alter(bool& field) { field = !field; }
inline void alter(double& field) { field += 0.5; }
inline void alter(int64_t& field) { field += 1; }
inline void alter(std::optional<int64_t>& field) { field.reset(); }
inline void alter(QueryScalingSpec& field) {
  field = {.beta = 0.5, .original_max_position_embeddings = 2};
}
inline void alter(std::optional<ExpertsSpec>& field) {
  field = ExpertsSpec{.num_experts = 8, .experts_per_token = 2};
}
inline void alter(std::vector<LayerSpec>& field) { field.pop_back(); }
// Norms after the halves; those of OLMo 2, which has no others, are a test of their own.
inline void alter(NormPlacement& field) { field = NormPlacement::kPreAndPost; }
template <typename Kind>
requires std::is_enum_v<Kind>
void alter(Kind& field) { field = static_cast<Kind>(static_cast<int>(field) + 1); }

inline BlockSpec block_of(size_t num_layers) {
  return {.layers = std::vector<LayerSpec>(num_layers)};
}

// A block of so many layers with one field altered: a field of the block, or of every layer.
inline BlockSpec altered_block(std::string_view name, size_t num_layers) {
  BlockSpec block = block_of(num_layers);
  for_each_block_field([&](std::string_view field, auto... members) {
    if (field == name) alter(field_of(block, members...));
  });
  for_each_layer_field([&](std::string_view field, auto member) {
    if (field != name) return;
    for (LayerSpec& layer : block.layers) alter(layer.*member);
  });
  CHECK(block != block_of(num_layers), "a block has no field '", name, "'");
  return block;
}

// Compared by layer_runner_test, on every device with the fused products that it has for the block.
inline constexpr std::string_view kFieldsOfLayerRunner[] = {"norm",
                                                            "norm_placement",
                                                            "is_parallel",
                                                            "qk_norm",
                                                            "biases.qkv",
                                                            "biases.output",
                                                            "biases.gate_up",
                                                            "biases.down",
                                                            "activation",
                                                            "attention_scale",
                                                            "attention_softcap",
                                                            "query_scaling",
                                                            "residual_multiplier",
                                                            "sliding_window",
                                                            "rope_table"};
// Compared by the same test. Any other field of the layer runner is computed one by one.
inline constexpr std::string_view kFieldsOfFusedProducts[] = {
    "norm_placement",  "is_parallel",       "qk_norm",       "biases.qkv",
    "biases.output",   "biases.gate_up",    "biases.down",   "activation",
    "attention_scale", "attention_softcap", "query_scaling", "residual_multiplier",
    "sliding_window",  "rope_table"};
// Whoever computes layers alone passes over these: embeddings and logits come before and after.
// Compared by transformer_test.
inline constexpr std::string_view kFieldsOutsideLayers[] = {"embedding_multiplier",
                                                            "logit_softcap"};
// Compared by decoder_test.
inline constexpr std::string_view kFieldsOfDecodeStep[] = {"norm_placement",
                                                           "qk_norm",
                                                           "biases.qkv",
                                                           "activation",
                                                           "attention_scale",
                                                           "attention_softcap",
                                                           "embedding_multiplier",
                                                           "residual_multiplier",
                                                           "logit_softcap",
                                                           "sliding_window",
                                                           "rope_table"};

}  // namespace tessera
