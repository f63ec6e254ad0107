// How each model family names its weights. A family is a row of a table: a new family with the same
// transformer block is a new row here and its defaults in hf_config.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

// Tensor names of one family; "{layer}" in a per-layer pattern stands for the layer's index.
struct WeightNames {
  std::string_view embed_tokens;
  std::string_view final_norm;
  std::string_view lm_head;
  std::string_view input_layernorm;
  std::string_view q_proj;
  std::string_view k_proj;
  std::string_view v_proj;
  std::string_view o_proj;
  std::string_view post_attention_layernorm;
  std::string_view gate_proj;
  std::string_view up_proj;
  std::string_view down_proj;
};

// The pattern with the layer's index put in.
std::string layer_weight_name(std::string_view pattern, int64_t layer);

// Names for `model_type`; throws when the family is unknown, with the list of known ones.
const WeightNames& weight_names_for(std::string_view model_type);

// True for tensors that checkpoints carry and no engine needs, such as `rotary_emb.inv_freq`.
bool is_ignorable_weight(std::string_view name);

}  // namespace tessera
