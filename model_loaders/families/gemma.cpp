#include <array>

#include "model_loaders/families/families.h"

namespace tessera {
namespace {

// The keys of both, which differ in what attn_logit_softcapping does. The activation is
// hidden_activation; hidden_act is from before it was told apart.
constexpr auto gemma_keys(decltype(FamilyKey::read) read_softcap) {
  return std::to_array<FamilyKey>({
      {"attention_bias", read_attention_bias},
      {"query_pre_attn_scalar", read_query_pre_attn_scalar},
      {"attn_logit_softcapping", read_softcap},
      {"final_logit_softcapping", read_logit_softcap},
      {"use_bidirectional_attention", refuse_true},
      {"sliding_window_size", ignore_integer},
      {"_sliding_window_pattern", ignore_integer},  // written since 4.53, always beside layer_types
      {"hidden_activation", read_activation},
      {"hidden_act", ignore_string},
  });
}

constexpr auto kGemma2Keys = gemma_keys(read_attention_softcap);
constexpr auto kGemma3Keys = gemma_keys(refuse_number);  // its class has the key and no such cap

constexpr WeightNames kGemmaWeights[] = {
    {WeightRole::kPreFeedforwardLayernorm,
     {"model.layers.{layer}.pre_feedforward_layernorm.weight"}},
};

}  // namespace

std::vector<ModelFamily> gemma_families() {
  return {
      {.model_type = "gemma2",
       .architecture = "Gemma2ForCausalLM",
       .vocab_size = 256000,
       .hidden_size = 2304,
       .intermediate_size = 9216,
       .num_layers = 26,
       .num_heads = 8,
       .num_kv_heads = 4,
       .head_dim = 256,
       .max_position_embeddings = 8192,
       .ties_embeddings = true,
       .block = {.norm_placement = NormPlacement::kPreAndPost,
                 .activation = Activation::kGeluTanh,
                 .attention_scale = 1.0 / 16.0,
                 .attention_softcap = 50.0,
                 .logit_softcap = 30.0},
       .norm_offset = 1.0,
       .scales_embeddings_by_root_of_hidden_size = true,
       .layers = {.sliding_window = 4096,
                  .sliding = SlidingLayers::kAllButEvery,
                  .full_attention_interval = 2},
       .keys = kGemma2Keys,
       .weights = kGemmaWeights},
      {.model_type = "gemma3_text",
       .architecture = "Gemma3ForCausalLM",
       .vocab_size = 262208,
       .hidden_size = 2304,
       .intermediate_size = 9216,
       .num_layers = 26,
       .num_heads = 8,
       .num_kv_heads = 4,
       .head_dim = 256,
       .max_position_embeddings = 131072,
       .ties_embeddings = true,
       .block = {.norm_placement = NormPlacement::kPreAndPost,
                 .qk_norm = QkNorm::kPerHead,
                 .activation = Activation::kGeluTanh,
                 .attention_scale = 1.0 / 16.0},
       .norm_offset = 1.0,
       .scales_embeddings_by_root_of_hidden_size = true,
       .layers = {.sliding_window = 4096,
                  .sliding = SlidingLayers::kAllButEvery,
                  .full_attention_interval = 6,
                  .interval_key = "sliding_window_pattern"},
       .rope = {.table = {.theta = 1e6}, .sliding_layers_differ = true, .local_theta = 1e4},
       .keys = kGemma3Keys,
       .weights = kGemmaWeights},
  };
}

}  // namespace tessera
