#include "model_loaders/families/families.h"

namespace tessera {
namespace {

constexpr FamilyKey kLlamaKeys[] = {
    {"attention_bias", read_attention_bias},
    {"mlp_bias", read_mlp_bias},
    {"activation", ignore_string},  // Falcon 3, beside hidden_act
    {"hidden_act", read_activation},
};

constexpr FamilyKey kMistralKeys[] = {
    {"attention_bias", refuse_true},
    {"mlp_bias", refuse_true},
    {"hidden_act", read_activation},
};

constexpr FamilyKey kSmolLm3Keys[] = {
    {"attention_bias", read_attention_bias},
    {"mlp_bias", read_mlp_bias},
    {"max_window_layers", ignore_integer},
    {"hidden_act", read_activation},
};

constexpr FamilyKey kGraniteKeys[] = {
    {"attention_bias", read_attention_bias},
    {"mlp_bias", read_mlp_bias},
    {"embedding_multiplier", read_embedding_multiplier},
    {"attention_multiplier", read_attention_scale},
    {"residual_multiplier", read_residual_multiplier},
    {"logits_scaling", read_logits_scaling},
    {"hidden_act", read_activation},
};

constexpr FamilyKey kSeedOssKeys[] = {
    {"attention_bias", read_qkv_bias},
    {"attention_out_bias", read_output_bias},
    {"mlp_bias", read_mlp_bias},
    {"hidden_act", read_activation},
};

ModelFamily mistral(std::string_view model_type, std::string_view architecture) {
  return {.model_type = model_type,
          .architecture = architecture,
          .vocab_size = 32000,
          .hidden_size = 4096,
          .intermediate_size = 14336,
          .num_layers = 32,
          .num_heads = 32,
          .num_kv_heads = 8,
          .max_position_embeddings = 131072,
          .layers = {.sliding_window = 4096},
          .keys = kMistralKeys};
}

}  // namespace

std::vector<ModelFamily> llama_families() {
  return {
      {.model_type = "llama",
       .architecture = "LlamaForCausalLM",
       .vocab_size = 32000,
       .hidden_size = 4096,
       .intermediate_size = 11008,
       .num_layers = 32,
       .num_heads = 32,
       .max_position_embeddings = 2048,
       .keys = kLlamaKeys},
      mistral("mistral", "MistralForCausalLM"),
      // With layer_types: what transformers 5 calls and writes it.
      mistral("ministral", "MinistralForCausalLM"),
      {.model_type = "ministral3",
       .architecture = "Ministral3ForCausalLM",
       .vocab_size = 131072,
       .hidden_size = 4096,
       .intermediate_size = 14336,
       .num_layers = 34,
       .num_heads = 32,
       .num_kv_heads = 8,
       .head_dim = 128,
       .max_position_embeddings = 262144,
       .norm_eps = 1e-5,
       .block = {.query_scaling = {.beta = 0.1, .original_max_position_embeddings = 16384}},
       .layers = {.sliding_window = 0},
       .rope = {.table = {.theta = 1e6,
                          .scaling = {.kind = RopeScaling::Kind::kYarn,
                                      .factor = 16.0,
                                      .original_max_position_embeddings = 16384}},
                .theta_of_parameters = 1e4,
                .scales_queries = true},
       .keys = kMistralKeys},
      {.model_type = "smollm3",
       .architecture = "SmolLM3ForCausalLM",
       .vocab_size = 128256,
       .hidden_size = 2048,
       .intermediate_size = 11008,
       .num_layers = 36,
       .num_heads = 16,
       .num_kv_heads = 4,
       .max_position_embeddings = 32768,
       .ties_embeddings = true,
       .layers = {.sliding_window = 0,
                  .window_has_switch = true,
                  .sliding = SlidingLayers::kWithoutRope,
                  .rotating = RotatingLayers::kListed},
       .rope = {.table = {.theta = 2e6}},
       .keys = kSmolLm3Keys},
      {.model_type = "granite",
       .architecture = "GraniteForCausalLM",
       .vocab_size = 32000,
       .hidden_size = 4096,
       .intermediate_size = 11008,
       .num_layers = 32,
       .num_heads = 32,
       .max_position_embeddings = 2048,
       .block = {.attention_scale = 1.0},
       .keys = kGraniteKeys},
      {.model_type = "seed_oss",
       .architecture = "SeedOssForCausalLM",
       .vocab_size = 155136,
       .hidden_size = 4096,
       .intermediate_size = 27648,
       .num_layers = 64,
       .num_heads = 80,
       .num_kv_heads = 8,
       .head_dim = 128,
       .max_position_embeddings = 524288,
       .block = {.biases = {.qkv = true}},
       .keys = kSeedOssKeys},
  };
}

}  // namespace tessera
