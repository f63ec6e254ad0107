#include <array>
#include <optional>
#include <string>

#include "kernels/tensor/check.h"
#include "model_loaders/families/families.h"
#include "model_loaders/printable.h"
#include "model_loaders/rope_config.h"

namespace tessera {
namespace {

// What the writer's own names for options say of a model whose layers are as transformers' class
// computes them.
void require_value(const JsonObject& json, std::string_view key, std::string_view supported) {
  const std::optional<std::string> value = json.find_string(key);
  CHECK(!value || *value == supported, json.path(), ": ", json.field(key), " '", printable(*value),
        "' is not supported; supported: ", supported);
}

void require_gptj_rope(const JsonObject& json, std::string_view key, ModelConfig&) {
  require_value(json, key, "rope_gptj");
}

void require_local_first(const JsonObject& json, std::string_view key, ModelConfig&) {
  require_value(json, key, "local_attn_first");
}

// What the first models were trained for: beside it their max_position_embeddings says 8192.
void read_model_max_length(const JsonObject& json, std::string_view key, ModelConfig& config) {
  config.max_position_embeddings =
      json.find_integer(key, 1, kMaxContextTokens).value_or(config.max_position_embeddings);
}

void read_use_qk_norm(const JsonObject& json, std::string_view key, ModelConfig& config) {
  if (json.find_bool(key).value_or(false)) config.block.qk_norm = QkNorm::kLayerNormPerHead;
}

// The keys of both, which differ in what use_qk_norm does.
constexpr auto cohere_keys(decltype(FamilyKey::read) read_qk_norm) {
  return std::to_array<FamilyKey>({
      {"attention_bias", read_attention_bias},
      {"use_qk_norm", read_qk_norm},
      {"logit_scale", read_logit_multiplier},
      {"layer_switch", ignore_integer},
      {"model_max_length", read_model_max_length},
      {"order_of_interleaved_layers", require_local_first},
      {"position_embedding_type", require_gptj_rope},
      {"_sliding_window_pattern", ignore_integer},  // written from 4.53 to 4.57, beside layer_types
      {"rotary_pct", require_one},
      {"use_embedding_sharing", require_true},
      {"use_gated_activation", require_true},
      {"use_parallel_block", require_true},
      {"use_parallel_embedding", ignore_bool},
      {"hidden_act", read_activation},
  });
}

constexpr auto kCohereKeys = cohere_keys(read_use_qk_norm);
constexpr auto kCohere2Keys = cohere_keys(refuse_true);  // its class has no such norms

// What both have.
ModelFamily cohere() {
  return {.model_type = "cohere",
          .architecture = "CohereForCausalLM",
          .vocab_size = 256000,
          .hidden_size = 8192,
          .intermediate_size = 22528,
          .num_layers = 40,
          .num_heads = 64,
          .max_position_embeddings = 8192,
          .norm_eps_key = "layer_norm_eps",
          .norm_eps = 1e-5,
          .ties_embeddings = true,
          .block = {.norm = NormKind::kLayerNorm, .is_parallel = true},
          .logit_multiplier = 0.0625,
          .rope = {.table = {.theta = 500000.0}, .is_interleaved = true},
          .keys = kCohereKeys};
}

}  // namespace

std::vector<ModelFamily> cohere_families() {
  ModelFamily cohere2 = cohere();
  cohere2.model_type = "cohere2";
  cohere2.architecture = "Cohere2ForCausalLM";
  cohere2.layers = {.sliding_window = 4096,
                    .sliding = SlidingLayers::kAllButEvery,
                    .full_attention_interval = 4,
                    .interval_key = "sliding_window_pattern",
                    .rotating = RotatingLayers::kSliding};
  cohere2.rope.table.theta = 10000.0;
  cohere2.keys = kCohere2Keys;
  return {cohere(), cohere2};
}

}  // namespace tessera
