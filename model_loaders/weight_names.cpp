#include "model_loaders/weight_names.h"

#include <algorithm>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

struct FamilyNames {
  std::string_view model_type;
  WeightNames names;
};

constexpr WeightNames kLlamaNames = {
    .embed_tokens = "model.embed_tokens.weight",
    .final_norm = "model.norm.weight",
    .lm_head = "lm_head.weight",
    .input_layernorm = "model.layers.{layer}.input_layernorm.weight",
    .q_proj = "model.layers.{layer}.self_attn.q_proj.weight",
    .k_proj = "model.layers.{layer}.self_attn.k_proj.weight",
    .v_proj = "model.layers.{layer}.self_attn.v_proj.weight",
    .o_proj = "model.layers.{layer}.self_attn.o_proj.weight",
    .post_attention_layernorm = "model.layers.{layer}.post_attention_layernorm.weight",
    .gate_proj = "model.layers.{layer}.mlp.gate_proj.weight",
    .up_proj = "model.layers.{layer}.mlp.up_proj.weight",
    .down_proj = "model.layers.{layer}.mlp.down_proj.weight",
};

constexpr FamilyNames kFamilies[] = {
    {"llama", kLlamaNames},
    {"mistral", kLlamaNames},
};

}  // namespace

std::string layer_weight_name(std::string_view pattern, int64_t layer) {
  constexpr std::string_view kPlaceholder = "{layer}";
  const size_t position = pattern.find(kPlaceholder);
  CHECK(position != std::string_view::npos, "no {layer} in the weight name '", pattern, "'");
  return concat(pattern.substr(0, position), layer, pattern.substr(position + kPlaceholder.size()));
}

const WeightNames& weight_names_for(std::string_view model_type) {
  const auto* const family = std::ranges::find(kFamilies, model_type, &FamilyNames::model_type);
  if (family != std::end(kFamilies)) return family->names;
  std::string known;
  for (const FamilyNames& row : kFamilies) known += concat(" ", row.model_type);
  throw Error(
      concat("no weight names for model type '", printable(model_type), "'; known:", known));
}

bool is_ignorable_weight(std::string_view name) {
  // Tables that old versions of transformers saved although they follow from config.json.
  return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".rotary_emb.cos_cached") ||
         name.ends_with(".rotary_emb.sin_cached");
}

}  // namespace tessera
