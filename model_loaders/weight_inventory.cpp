#include "model_loaders/weight_inventory.h"

#include <set>

#include "kernels/tensor/check.h"
#include "model_loaders/printable.h"
#include "model_loaders/weight_names.h"

namespace tessera {

std::vector<ExpectedWeight> expected_weights(const ModelConfig& config) {
  const WeightNames& names = weight_names_for(config.model_type);
  const int64_t hidden = config.hidden_size;
  const int64_t query = config.num_heads * config.head_dim;
  const int64_t key_value = config.num_kv_heads * config.head_dim;
  const int64_t intermediate = config.intermediate_size;
  constexpr std::string_view kNorm = "[hidden_size]";
  constexpr std::string_view kEmbedding = "[vocab_size, hidden_size]";
  constexpr std::string_view kKeyValue = "[num_key_value_heads * head_dim, hidden_size]";
  constexpr std::string_view kGateUp = "[intermediate_size, hidden_size]";

  std::vector<ExpectedWeight> weights;
  const auto add = [&](std::string_view name, const Shape& shape, std::string_view fields) {
    weights.push_back({std::string(name), shape, fields});
  };
  add(names.embed_tokens, {config.vocab_size, hidden}, kEmbedding);
  for (int64_t layer = 0; layer < config.num_layers; ++layer) {
    const auto name = [&](std::string_view pattern) { return layer_weight_name(pattern, layer); };
    add(name(names.input_layernorm), {hidden}, kNorm);
    add(name(names.q_proj), {query, hidden}, "[num_attention_heads * head_dim, hidden_size]");
    add(name(names.k_proj), {key_value, hidden}, kKeyValue);
    add(name(names.v_proj), {key_value, hidden}, kKeyValue);
    add(name(names.o_proj), {hidden, query}, "[hidden_size, num_attention_heads * head_dim]");
    add(name(names.post_attention_layernorm), {hidden}, kNorm);
    add(name(names.gate_proj), {intermediate, hidden}, kGateUp);
    add(name(names.up_proj), {intermediate, hidden}, kGateUp);
    add(name(names.down_proj), {hidden, intermediate}, "[hidden_size, intermediate_size]");
  }
  add(names.final_norm, {hidden}, kNorm);
  if (!config.ties_embeddings) add(names.lm_head, {config.vocab_size, hidden}, kEmbedding);
  return weights;
}

std::vector<std::string> missing_weights(const Checkpoint& checkpoint, const ModelConfig& config) {
  const std::string_view lm_head = weight_names_for(config.model_type).lm_head;
  std::vector<std::string> missing;
  for (const ExpectedWeight& weight : expected_weights(config)) {
    if (checkpoint.find(weight.name) != nullptr) continue;
    missing.push_back(weight.name);
    if (weight.name == lm_head) missing.back() += " (tie_word_embeddings is false)";
  }
  return missing;
}

std::vector<std::string> unexpected_weights(const Checkpoint& checkpoint,
                                            const ModelConfig& config) {
  std::set<std::string, std::less<>> known;
  for (const ExpectedWeight& weight : expected_weights(config)) known.insert(weight.name);
  known.emplace(weight_names_for(config.model_type).lm_head);
  std::vector<std::string> unexpected;
  for (const auto& [name, entry] : checkpoint.tensors()) {
    if (!known.contains(name) && !is_ignorable_weight(name)) unexpected.push_back(printable(name));
  }
  return unexpected;
}

void check_weight_shapes(const Checkpoint& checkpoint, const ModelConfig& config) {
  for (const ExpectedWeight& weight : expected_weights(config)) {
    const TensorEntry* const entry = checkpoint.find(weight.name);
    if (entry == nullptr || entry->shape == weight.shape) continue;
    throw Error(concat(checkpoint.file_paths()[entry->file_index], ": tensor '", weight.name,
                       "' has shape ", entry->shape, ", expected ", weight.shape, " = ",
                       weight.shape_fields, " of config.json"));
  }
}

}  // namespace tessera
