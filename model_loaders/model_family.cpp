#include "model_loaders/model_family.h"

#include <algorithm>
#include <string>

#include "kernels/tensor/check.h"
#include "model_loaders/families/families.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr ModelWrapper kWrappers[] = {
    {"gemma3", "Gemma3ForConditionalGeneration", {"gemma3_text"}},
    {"mistral3", "Mistral3ForConditionalGeneration", {"mistral", "ministral3"}},
};

// Names of weights in Llama's checkpoints and of those that came after it. Models with one norm for
// each half call the one that follows the attention post_attention_layernorm, whether it comes
// before the feed-forward network or after what attention adds.
constexpr WeightNames kCommonNames[] = {
    {WeightRole::kEmbedTokens, {"model.embed_tokens.weight"}},
    {WeightRole::kInputLayernorm, {"model.layers.{layer}.input_layernorm.weight"}},
    {WeightRole::kQkvProj,
     {"model.layers.{layer}.self_attn.q_proj.weight",
      "model.layers.{layer}.self_attn.k_proj.weight",
      "model.layers.{layer}.self_attn.v_proj.weight"}},
    {WeightRole::kQkvBias,
     {"model.layers.{layer}.self_attn.q_proj.bias", "model.layers.{layer}.self_attn.k_proj.bias",
      "model.layers.{layer}.self_attn.v_proj.bias"}},
    {WeightRole::kQkNorm,
     {"model.layers.{layer}.self_attn.q_norm.weight",
      "model.layers.{layer}.self_attn.k_norm.weight"}},
    {WeightRole::kOProj, {"model.layers.{layer}.self_attn.o_proj.weight"}},
    {WeightRole::kOBias, {"model.layers.{layer}.self_attn.o_proj.bias"}},
    {WeightRole::kPostAttentionLayernorm, {"model.layers.{layer}.post_attention_layernorm.weight"}},
    {WeightRole::kPreFeedforwardLayernorm,
     {"model.layers.{layer}.post_attention_layernorm.weight"}},
    {WeightRole::kGateUpProj,
     {"model.layers.{layer}.mlp.gate_proj.weight", "model.layers.{layer}.mlp.up_proj.weight"}},
    {WeightRole::kGateUpBias,
     {"model.layers.{layer}.mlp.gate_proj.bias", "model.layers.{layer}.mlp.up_proj.bias"}},
    {WeightRole::kDownProj, {"model.layers.{layer}.mlp.down_proj.weight"}},
    {WeightRole::kDownBias, {"model.layers.{layer}.mlp.down_proj.bias"}},
    {WeightRole::kPostFeedforwardLayernorm,
     {"model.layers.{layer}.post_feedforward_layernorm.weight"}},
    {WeightRole::kNorm, {"model.norm.weight"}},
    {WeightRole::kLmHead, {"lm_head.weight"}},
};

const WeightNames* find_names(std::span<const WeightNames> names, WeightRole role) {
  const auto found = std::ranges::find(names, role, &WeightNames::role);
  return found == names.end() ? nullptr : &*found;
}

}  // namespace

const std::vector<ModelFamily>& model_families() {
  static const std::vector<ModelFamily> families = [] {
    std::vector<ModelFamily> all;
    for (const auto& kin : {llama_families(), qwen_families(), gemma_families(), phi_families(),
                            post_norm_families(), glm_families(), cohere_families()}) {
      all.insert(all.end(), kin.begin(), kin.end());
    }
    return all;
  }();
  return families;
}

std::span<const ModelWrapper> model_wrappers() { return kWrappers; }

const ModelFamily& model_family(std::string_view model_type) {
  const auto& families = model_families();
  const auto family = std::ranges::find(families, model_type, &ModelFamily::model_type);
  if (family != families.end()) return *family;
  std::string known;
  for (const ModelFamily& row : families) known += concat(" ", row.model_type);
  throw Error(concat("unknown model type '", printable(model_type), "'; known:", known));
}

std::span<const std::string_view> weight_sources(const ModelFamily& family, WeightRole role) {
  const WeightNames* names = find_names(family.weights, role);
  if (names == nullptr) names = find_names(kCommonNames, role);
  CHECK(names != nullptr, "model type ", family.model_type, " has no names for weight role ",
        static_cast<int>(role));
  const auto* const end = std::ranges::find(names->sources, "");
  return {names->sources.begin(), end};
}

}  // namespace tessera
