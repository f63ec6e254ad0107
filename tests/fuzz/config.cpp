// config.json, and what is computed from it before weights are read.
#include <algorithm>
#include <cmath>

#include "model_loaders/hf_config.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/oracle.h"
#include "tests/model_loaders/hostile_configs.h"
#include "tests/model_loaders/model_files.h"

namespace tessera {
namespace {

void check_sizes(const ModelConfig& config) {
  for (const int64_t size :
       {config.hidden_size, config.intermediate_size, config.num_layers, config.num_heads,
        config.num_kv_heads, config.vocab_size, config.max_position_embeddings}) {
    require(size > 0, "sizes are positive");
  }
  require(config.num_heads % config.num_kv_heads == 0, "key heads divide heads");
  require(config.head_dim > 0 && config.head_dim % 2 == 0, "head_dim is even");
  require(std::isfinite(config.rms_norm_eps) && config.rms_norm_eps > 0, "epsilon is positive");
}

void check_token_ids(const ModelConfig& config) {
  std::vector<int64_t> ids = config.eos_token_ids;
  if (config.bos_token_id) ids.push_back(*config.bos_token_id);
  require(std::ranges::all_of(ids, [&](int64_t id) { return id >= 0 && id < config.vocab_size; }),
          "token ids are in the vocabulary");
}

void check_layers(const ModelConfig& config) {
  const std::vector<LayerSpec>& layers = config.block.layers;
  require(static_cast<int64_t>(layers.size()) == config.num_layers, "every layer is described");
  const auto num_tables = static_cast<int64_t>(config.rope_tables.size());
  for (const LayerSpec& layer : layers) {
    require(layer.sliding_window >= 0, "a window is not negative");
    if (!layer.rope_table) continue;
    require(*layer.rope_table >= 0 && *layer.rope_table < num_tables,
            "the table of a layer exists");
  }
}

// Large ones are the same computation a million times.
void check_rope(const ModelConfig& config) {
  if (config.head_dim > 256) return;
  const int64_t rotary_dim = config.rotary_dim();
  require(rotary_dim > 0 && rotary_dim % 2 == 0 && rotary_dim <= config.head_dim,
          "an even part of a head turns");
  for (const RopeTable& table : config.rope_tables) {
    const RopeValues values = rope_values(table, config.head_dim, rotary_dim, 100'000);
    for (const auto* numbers : {&values.inverse_frequencies, &values.amplitudes}) {
      require(std::ranges::all_of(*numbers, [](double f) { return f >= 0 && std::isfinite(f); }),
              "rotary frequencies and amplitudes are numbers");
    }
  }
}

void read(std::string_view bytes) {
  const JsonObject json = JsonObject::parse(bytes, "config.json");
  std::vector<std::string> warnings;
  const ModelConfig config = read_hf_config(json, /*allow_unknown=*/true, warnings);
  for (const std::string& warning : warnings) require_readable(warning);
  check_sizes(config);
  check_token_ids(config);
  check_layers(config);
  check_rope(config);
  if (config.num_layers <= 4) weight_specs(config);

  std::vector<std::string> others;
  read_hf_config(JsonObject::parse(bytes, "config.json"), /*allow_unknown=*/false, others);
  require(others == warnings, "what is accepted without being allowed is warned of all the same");
}

std::vector<std::string> seeds() {
  std::vector<std::string> seeds = {
      kTinyConfigJson,
      R"({"architectures": ["MistralForCausalLM"], "torch_dtype": "bfloat16", "head_dim": 128,
          "sliding_window": null, "eos_token_id": [1, 2], "bos_token_id": 1, "rope_theta": 1e6})",
      R"({"model_type": "llama", "tie_word_embeddings": true, "rope_scaling": {
          "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}, "transformers_version": "4.45.0"})",
      R"({"model_type": "mistral", "num_hidden_layers": 1, "layer_types": ["sliding_attention"],
          "rope_parameters": {"sliding_attention": {"rope_theta": 2.5, "rope_type": "linear",
          "factor": 2}}, "dtype": "float16"})",
      R"({"architectures": ["Gemma3ForConditionalGeneration"], "text_config": {"model_type":
          "gemma3_text", "num_hidden_layers": 3, "rope_scaling": {"rope_type": "linear",
          "factor": 8.0}, "sliding_window_pattern": 2}, "vision_config": {}})",
      R"({"model_type": "phi3", "hidden_size": 16, "num_attention_heads": 2,
          "partial_rotary_factor": 0.5, "rope_scaling": {"type": "longrope",
          "short_factor": [1.0, 2], "long_factor": [2, 4.0]}})",
      R"({"model_type": "olmo3", "rope_scaling": {"rope_type": "yarn", "factor": 8.0,
          "original_max_position_embeddings": 8192, "beta_fast": 32, "beta_slow": 1,
          "mscale": 1.0, "mscale_all_dim": 0.5, "truncate": false}})",
      R"({"model_type": "smollm3", "num_hidden_layers": 2, "no_rope_layers": [1, 0]})",
      R"({"model_type": "cohere2", "num_hidden_layers": 4, "logit_scale": 0.25})",
      R"({"architectures": ["FooForCausalLM"], "auto_map": {"AutoConfig": "foo.Foo"}})",
  };
  const auto add = [&](const HostileConfig& hostile) {
    seeds.push_back(R"({"model_type": "llama", )" + hostile.keys + "}");
  };
  std::ranges::for_each(hostile_sizes(), add);
  std::ranges::for_each(kHostileHeads, add);
  std::ranges::for_each(kHostileRope, add);
  std::ranges::for_each(kHostileSemantics, add);
  return seeds;
}

std::vector<std::string> dictionary() {
  std::vector<std::string> words = {
      "null",    "true", "-1", "1e308", "1e-320", "9223372036854775807", "18446744073709551615",
      "\\u001b", "[",    "{"};
  for (const char* const key : {"model_type",
                                "architectures",
                                "hidden_size",
                                "intermediate_size",
                                "num_hidden_layers",
                                "num_attention_heads",
                                "num_key_value_heads",
                                "head_dim",
                                "vocab_size",
                                "max_position_embeddings",
                                "rms_norm_eps",
                                "rope_theta",
                                "rope_scaling",
                                "rope_parameters",
                                "rope_type",
                                "type",
                                "factor",
                                "low_freq_factor",
                                "high_freq_factor",
                                "original_max_position_embeddings",
                                "partial_rotary_factor",
                                "layer_types",
                                "sliding_window",
                                "sliding_attention",
                                "full_attention",
                                "eos_token_id",
                                "bos_token_id",
                                "quantization_config",
                                "quant_method",
                                "hidden_act",
                                "silu",
                                "torch_dtype",
                                "dtype",
                                "bfloat16",
                                "llama",
                                "mistral",
                                "qwen3",
                                "LlamaForCausalLM",
                                "llama3",
                                "linear",
                                "dynamic",
                                "yarn",
                                "longrope",
                                "proportional",
                                "short_factor",
                                "long_factor",
                                "attention_factor",
                                "mscale",
                                "beta_fast",
                                "no_rope_layers",
                                "sliding_window_pattern",
                                "use_sliding_window",
                                "max_window_layers",
                                "rope_local_base_freq",
                                "text_config",
                                "gemma3",
                                "phi3",
                                "glm4",
                                "cohere2",
                                "default"}) {
    words.push_back(concat('"', key, '"'));
  }
  return words;
}

}  // namespace

FuzzTarget config_target() { return {"config", read, seeds(), dictionary()}; }

}  // namespace tessera
