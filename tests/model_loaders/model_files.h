// A complete tiny Llama folder, for tests that break one thing in it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model_loaders/model_config.h"
#include "model_loaders/weight_specs.h"
#include "tests/model_loaders/safetensors_builder.h"

namespace tessera {

inline const std::string kTinyConfigJson =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8,
        "intermediate_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "vocab_size": 10})";

// What kTinyConfigJson says, as far as weights are concerned.
inline ModelConfig tiny_config() {
  ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  config.vocab_size = 10;
  return config;
}

// Every tensor that the weights of `config` are made of.
inline std::vector<WeightSource> all_sources(const ModelConfig& config) {
  std::vector<WeightSource> sources;
  for (const WeightSpec& spec : weight_specs(config)) {
    sources.insert(sources.end(), spec.sources.begin(), spec.sources.end());
  }
  return sources;
}

// A safetensors file with the weights of `config` that `wanted` accepts and, in the end, `extra`
// tensors of one element.
inline std::string tiny_weights(const ModelConfig& config,
                                const std::function<bool(const std::string&)>& wanted,
                                const std::vector<std::string>& extra = {}) {
  SafetensorsBuilder builder;
  for (const WeightSource& weight : all_sources(config)) {
    if (!wanted(weight.name)) continue;
    const auto bytes = static_cast<size_t>(weight.shape.num_elements()) * 2;
    builder.add(weight.name, "BF16", concat(weight.shape), std::string(bytes, 'x'));
  }
  for (const std::string& name : extra) builder.add(name, "F32", "[1]", "abcd");
  return builder.file();
}

inline std::string tiny_weights(const ModelConfig& config) {
  return tiny_weights(config, [](const std::string&) { return true; });
}

}  // namespace tessera
