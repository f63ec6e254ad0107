#include "model_loaders/model_family.h"

#include <algorithm>
#include <limits>
#include <string>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"

namespace tessera {
namespace {

constexpr BlockKey kLlamaKeys[] = {
    {"attention_bias", refuse_true},      {"mlp_bias", refuse_true},
    {"add_cross_attention", refuse_true}, {"is_encoder_decoder", refuse_true},
    {"rope_interleaved", refuse_true},    {"hidden_act", read_activation},
};

// A key that says nothing as long as the switch beside it is off.
void ignore_integer(const JsonObject& config, std::string_view key, BlockSpec&) {
  config.find_integer(key, 0, std::numeric_limits<int64_t>::max());
}

constexpr BlockKey kQwen3Keys[] = {
    {"attention_bias", refuse_true},      {"use_sliding_window", refuse_true},
    {"sliding_window", ignore_integer},   {"max_window_layers", ignore_integer},
    {"add_cross_attention", refuse_true}, {"is_encoder_decoder", refuse_true},
    {"hidden_act", read_activation},
};

constexpr WeightNames kLlamaWeights[] = {
    {WeightRole::kEmbedTokens, {"model.embed_tokens.weight"}},
    {WeightRole::kInputLayernorm, {"model.layers.{layer}.input_layernorm.weight"}},
    {WeightRole::kQkvProj,
     {"model.layers.{layer}.self_attn.q_proj.weight",
      "model.layers.{layer}.self_attn.k_proj.weight",
      "model.layers.{layer}.self_attn.v_proj.weight"}},
    {WeightRole::kOProj, {"model.layers.{layer}.self_attn.o_proj.weight"}},
    {WeightRole::kPreFeedforwardLayernorm,
     {"model.layers.{layer}.post_attention_layernorm.weight"}},
    {WeightRole::kGateUpProj,
     {"model.layers.{layer}.mlp.gate_proj.weight", "model.layers.{layer}.mlp.up_proj.weight"}},
    {WeightRole::kDownProj, {"model.layers.{layer}.mlp.down_proj.weight"}},
    {WeightRole::kNorm, {"model.norm.weight"}},
    {WeightRole::kLmHead, {"lm_head.weight"}},
};

constexpr WeightNames kQkNormWeights = {WeightRole::kQkNorm,
                                        {"model.layers.{layer}.self_attn.q_norm.weight",
                                         "model.layers.{layer}.self_attn.k_norm.weight"}};

// Llama's rows and one more.
constexpr auto kQwen3Weights = [] {
  std::array<WeightNames, std::size(kLlamaWeights) + 1> rows{};
  rows.back() = kQkNormWeights;
  std::ranges::copy(kLlamaWeights, rows.begin());
  return rows;
}();

const ModelFamily kFamilies[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 11008,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 0,
     .max_position_embeddings = 2048,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000.0,
     .sliding_window = {},
     .block = {},
     .keys = kLlamaKeys,
     .weights = kLlamaWeights},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .vocab_size = 32000,
     .hidden_size = 4096,
     .intermediate_size = 14336,
     .num_layers = 32,
     .num_heads = 32,
     .num_kv_heads = 8,
     .max_position_embeddings = 131072,
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000.0,
     .sliding_window = 4096,
     .block = {},
     .keys = kLlamaKeys,
     .weights = kLlamaWeights},
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
     .rms_norm_eps = 1e-6,
     .rope_theta = 10000.0,
     .sliding_window = {},
     .block = {.qk_norm = QkNorm::kPerHead},
     .keys = kQwen3Keys,
     .weights = kQwen3Weights},
};

}  // namespace

std::span<const ModelFamily> model_families() { return kFamilies; }

const ModelFamily& model_family(std::string_view model_type) {
  const auto* const family = std::ranges::find(kFamilies, model_type, &ModelFamily::model_type);
  if (family != std::end(kFamilies)) return *family;
  std::string known;
  for (const ModelFamily& row : kFamilies) known += concat(" ", row.model_type);
  throw Error(concat("unknown model type '", printable(model_type), "'; known:", known));
}

}  // namespace tessera
