#include "model_loaders/families/families.h"

namespace tessera {
namespace {

constexpr FamilyKey kOlmoKeys[] = {
    {"attention_bias", read_attention_bias},
    {"hidden_act", read_activation},
};

constexpr FamilyKey kExaone4Keys[] = {
    {"hidden_act", read_activation},
};

}  // namespace

std::vector<ModelFamily> post_norm_families() {
  return {
      {.model_type = "olmo2",
       .architecture = "Olmo2ForCausalLM",
       .vocab_size = 50304,
       .hidden_size = 4096,
       .intermediate_size = 11008,
       .num_layers = 32,
       .num_heads = 32,
       .max_position_embeddings = 2048,
       .norm_eps = 1e-5,
       .block = {.norm_placement = NormPlacement::kPost, .qk_norm = QkNorm::kWholeProjection},
       .keys = kOlmoKeys},
      {.model_type = "olmo3",
       .architecture = "Olmo3ForCausalLM",
       .vocab_size = 50304,
       .hidden_size = 4096,
       .intermediate_size = 11008,
       .num_layers = 32,
       .num_heads = 32,
       .max_position_embeddings = 2048,
       .norm_eps = 1e-5,
       .block = {.norm_placement = NormPlacement::kPost, .qk_norm = QkNorm::kWholeProjection},
       .layers = {.sliding_window = 4096,
                  .sliding = SlidingLayers::kAllButEvery,
                  .full_attention_interval = 4},
       .rope = {.table = {.theta = 500000.0}, .sliding_layers_differ = true},
       .keys = kOlmoKeys},
      {.model_type = "exaone4",
       .architecture = "Exaone4ForCausalLM",
       .vocab_size = 102400,
       .hidden_size = 4096,
       .intermediate_size = 16384,
       .num_layers = 32,
       .num_heads = 32,
       .num_kv_heads = 32,
       .max_position_embeddings = 2048,
       .norm_eps = 1e-5,
       .block = {.norm_placement = NormPlacement::kPost, .qk_norm = QkNorm::kPerHead},
       .layers = {.sliding_window = 4096,
                  .sliding = SlidingLayers::kAllButEvery,
                  .full_attention_interval = 4,
                  .interval_key = "sliding_window_pattern",
                  .rotating = RotatingLayers::kSlidingIfWindows},
       .keys = kExaone4Keys},
  };
}

}  // namespace tessera
