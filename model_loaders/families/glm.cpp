#include "model_loaders/families/families.h"

namespace tessera {
namespace {

constexpr FamilyKey kGlmKeys[] = {
    {"attention_bias", read_qkv_bias},
    {"hidden_act", read_activation},
};

constexpr WeightNames kGlmWeights[] = {
    {WeightRole::kGateUpProj, {"model.layers.{layer}.mlp.gate_up_proj.weight"}},
};

constexpr WeightNames kGlm4Weights[] = {
    {WeightRole::kGateUpProj, {"model.layers.{layer}.mlp.gate_up_proj.weight"}},
    {WeightRole::kPostAttentionLayernorm, {"model.layers.{layer}.post_self_attn_layernorm.weight"}},
    {WeightRole::kPostFeedforwardLayernorm, {"model.layers.{layer}.post_mlp_layernorm.weight"}},
};

// What both have.
ModelFamily glm() {
  return {.model_type = "glm",
          .architecture = "GlmForCausalLM",
          .vocab_size = 151552,
          .hidden_size = 4096,
          .intermediate_size = 13696,
          .num_layers = 40,
          .num_heads = 32,
          .num_kv_heads = 2,
          .head_dim = 128,
          .max_position_embeddings = 131072,
          .norm_eps = 1.5625e-7,
          .block = {.biases = {.qkv = true}},
          .rope = {.partial_rotary_factor = 0.5, .is_interleaved = true},
          .keys = kGlmKeys,
          .weights = kGlmWeights};
}

}  // namespace

std::vector<ModelFamily> glm_families() {
  ModelFamily glm4 = glm();
  glm4.model_type = "glm4";
  glm4.architecture = "Glm4ForCausalLM";
  glm4.block.norm_placement = NormPlacement::kPreAndPost;
  glm4.weights = kGlm4Weights;
  return {glm(), glm4};
}

}  // namespace tessera
