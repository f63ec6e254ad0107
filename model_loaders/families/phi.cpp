#include "model_loaders/families/families.h"

namespace tessera {
namespace {

constexpr FamilyKey kPhi3Keys[] = {
    {"attention_bias", refuse_true},     {"mlp_bias", refuse_true},
    {"lm_head_bias", refuse_true},       {"full_attn_mod", require_one},
    {"interpolate_factor", require_one}, {"hidden_act", read_activation},
};

constexpr WeightNames kPhi3Weights[] = {
    {WeightRole::kQkvProj, {"model.layers.{layer}.self_attn.qkv_proj.weight"}},
    {WeightRole::kGateUpProj, {"model.layers.{layer}.mlp.gate_up_proj.weight"}},
};

}  // namespace

std::vector<ModelFamily> phi_families() {
  return {
      {.model_type = "phi3",
       .architecture = "Phi3ForCausalLM",
       .vocab_size = 32064,
       .hidden_size = 3072,
       .intermediate_size = 8192,
       .num_layers = 32,
       .num_heads = 32,
       .max_position_embeddings = 4096,
       .norm_eps = 1e-5,
       .layers = {.sliding_window = 0},
       .rope = {.partial_rotary_factor = 1.0, .original_max_position_embeddings = 4096},
       .keys = kPhi3Keys,
       .weights = kPhi3Weights},
  };
}

}  // namespace tessera
