#include <optional>

#include "model_loaders/families/families.h"

namespace tessera {
namespace {

// Qwen2.5-1M: how vLLM attends beyond the context of training, up to which it changes nothing. It
// is not computed here (transformers does not read the key either), so the context ends there.
void read_dual_chunk_attention(const JsonObject& json, std::string_view key, ModelConfig& config) {
  const std::optional<JsonObject> dual_chunk = json.find_object(key);
  if (!dual_chunk) return;
  const int64_t trained = dual_chunk->get_integer("original_max_position_embeddings", 1,
                                                  config.max_position_embeddings);
  for (const char* const other : {"chunk_size", "local_size"}) {
    ignore_integer(*dual_chunk, other, config);
  }
  config.max_position_embeddings = trained;
}

constexpr FamilyKey kQwen2Keys[] = {
    {"use_mrope", refuse_true},
    {"dual_chunk_attention_config", read_dual_chunk_attention},
    {"hidden_act", read_activation},
};

constexpr FamilyKey kQwen3Keys[] = {
    {"attention_bias", read_attention_bias},
    {"hidden_act", read_activation},
};

// Files have a window that is switched off.
constexpr LayerRules kLayers = {.sliding_window = 4096,
                                .window_has_switch = true,
                                .sliding = SlidingLayers::kFromMaxWindowLayers};

}  // namespace

std::vector<ModelFamily> qwen_families() {
  return {
      // No key says that there are biases.
      {.model_type = "qwen2",
       .architecture = "Qwen2ForCausalLM",
       .vocab_size = 151936,
       .hidden_size = 4096,
       .intermediate_size = 22016,
       .num_layers = 32,
       .num_heads = 32,
       .num_kv_heads = 32,
       .max_position_embeddings = 32768,
       .block = {.biases = {.qkv = true}},
       .layers = kLayers,
       .keys = kQwen2Keys},
      {.model_type = "qwen3",
       .architecture = "Qwen3ForCausalLM",
       .vocab_size = 151936,
       .hidden_size = 4096,
       .intermediate_size = 22016,
       .num_layers = 32,
       .num_heads = 32,
       .num_kv_heads = 32,
       .head_dim = 128,
       .max_position_embeddings = 32768,
       .block = {.qk_norm = QkNorm::kPerHead},
       .layers = kLayers,
       .keys = kQwen3Keys},
  };
}

}  // namespace tessera
