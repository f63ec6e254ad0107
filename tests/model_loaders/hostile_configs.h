// Values of config.json that must be refused, with what the person must see.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "kernels/tensor/check.h"

namespace tessera {

struct HostileConfig {
  std::string keys;     // beside model_type llama
  std::string message;  // a part of it

  friend std::ostream& operator<<(std::ostream& stream, const HostileConfig& config) {
    return stream << config.keys;
  }
};

inline std::vector<HostileConfig> hostile_sizes() {
  std::vector<HostileConfig> configs;
  for (const char* const value :
       {"\"4096\"", "4096.7", "-1", "0", "true", "1e12", "null", "[4096]", "1048577"}) {
    configs.push_back({concat(R"("hidden_size": )", value),
                       "hidden_size must be an integer in 1..1048576, got "});
  }
  for (const char* const field :
       {"intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "vocab_size", "max_position_embeddings", "head_dim"}) {
    for (const char* const value : {"0", "-1", "\"8\"", "8.5", "true", "18446744073709551615"}) {
      configs.push_back(
          {concat('"', field, "\": ", value), concat(field, " must be an integer in ")});
    }
  }
  for (const char* const value : {"0", "-1e-5", "\"1e-5\"", "2", "null"}) {
    configs.push_back({concat(R"("rms_norm_eps": )", value), "rms_norm_eps must be a number in "});
  }
  return configs;
}

inline const HostileConfig kHostileHeads[] = {
    {R"("num_attention_heads": 6, "num_key_value_heads": 4, "head_dim": 64)",
     "num_attention_heads 6 is not a multiple of num_key_value_heads 4"},
    {R"("num_attention_heads": 4, "num_key_value_heads": 8)",
     "num_attention_heads 4 is not a multiple of num_key_value_heads 8"},
    {R"("head_dim": 81)", "head_dim 81 must be even"},
    {R"("hidden_size": 96, "num_attention_heads": 32)",
     "head_dim 3 must be even (hidden_size / num_attention_heads)"},
    {R"("hidden_size": 100, "num_attention_heads": 32)",
     "hidden_size 100 is not a multiple of num_attention_heads 32"},
    {R"("hidden_size": 8, "num_attention_heads": 8)", "head_dim 1 must be even"},
};

inline const HostileConfig kHostileRope[] = {
    {R"("rope_scaling": {"rope_type": "foo", "factor": 2.0})",
     "rope_scaling.rope_type 'foo' is not supported; supported: default linear dynamic "
     "yarn longrope su llama3 proportional"},
    {R"("rope_scaling": {"type": "dynamic"})", "rope_scaling.factor is missing"},
    {R"("rope_scaling": {"type": "dynamic", "factor": 2.0, "alpha": 1000.0})",
     "rope_scaling.alpha is not understood"},
    {R"("head_dim": 2, "rope_scaling": {"type": "dynamic", "factor": 2.0})",
     "dynamic RoPE needs more than one pair"},
    {R"("rope_scaling": {"rope_type": "longrope", "long_factor": [1.0]})",
     "rope_scaling.short_factor is missing; it must be a list of numbers"},
    {R"("head_dim": 4, "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0, 1.0],
                                        "long_factor": [1.0]})",
     "rope_scaling.long_factor has 1 number, expected 2"},
    {R"("head_dim": 4, "rope_scaling": {"rope_type": "longrope", "short_factor": [1.0, -1.0],
                                        "long_factor": [1.0, 1.0]})",
     "rope_scaling.short_factor must be a number in 0.001..1e+06, got -1"},
    {R"("rope_parameters": {"rope_type": "yarn", "factor": 2.0, "low_freq_factor": 1.0})",
     "rope_parameters.low_freq_factor is not understood"},
    {R"("rope_theta": 1, "rope_parameters": {"rope_type": "yarn", "factor": 2.0})",
     "rope_theta must be more than 1 for yarn"},
    {R"("rope_scaling": {"rope_type": "linear", "type": "llama3", "factor": 2.0})",
     "rope_scaling.rope_type is 'linear' but rope_scaling.type is 'llama3'"},
    {R"("rope_scaling": {"type": "linear"})", "rope_scaling.factor is missing"},
    {R"("rope_scaling": {"type": "linear", "factor": 0})",
     "rope_scaling.factor must be a number in 1..1e+06, got 0"},
    {R"("rope_scaling": {"type": "linear", "factor": 2, "beta": 1})",
     "rope_scaling.beta is not understood"},
    {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 8192})",
     "rope_scaling.low_freq_factor is missing"},
    {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "original_max_position_embeddings": 8192})",
     "rope_scaling.high_freq_factor is missing"},
    {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})",
     "rope_scaling.low_freq_factor must be less than high_freq_factor, got 4 and 4"},
    {R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0})",
     "rope_scaling.original_max_position_embeddings is missing"},
    {R"("original_max_position_embeddings": 4096,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                         "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})",
     "original_max_position_embeddings is 4096 but rope_scaling.original_max_position_embeddings "
     "is 8192"},
    {R"("rope_scaling": "linear")", "rope_scaling must be an object, got \"linear\""},
    {R"("rope_scaling": {"type": "linear", "factor": 2.0},
        "rope_parameters": {"full_attention": {"rope_theta": 1.5}})",
     "rope_parameters.full_attention.rope_theta is 1.5, but rope_scaling takes the place of "
     "rope_parameters and rope_theta is 10000 with it"},
    {R"("rope_scaling": {"type": "linear", "factor": 2.0},
        "rope_parameters": {"rope_theta": 1.5})",
     "rope_parameters.rope_theta is 1.5, but rope_scaling takes the place of rope_parameters and "
     "rope_theta is 10000 with it"},
    {R"("rope_theta": 1.5, "rope_scaling": {"rope_theta": 2.5})",
     "rope_theta is 1.5 but rope_scaling.rope_theta is 2.5"},
    {R"("rope_theta": 0)", "rope_theta must be a number in 1.."},
    {R"("rope_theta": "10000")", "rope_theta must be a number in 1.."},
    {R"("rope_parameters": {"sliding_attention": {"rope_theta": 2.5}})",
     "rope_parameters.full_attention is missing"},
    {R"("rope_parameters": {"partial_rotary_factor": 0.5})",
     "rope_parameters.partial_rotary_factor 0.5 is not supported"},
    {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor 0.5 is not supported"},
    {R"("rope_interleaved": true)", "rope_interleaved true is not supported"},
};

inline const HostileConfig kHostileSemantics[] = {
    {R"("quantization_config": {"quant_method": "gptq", "bits": 4})",
     "quantised checkpoints (gptq) are not supported"},
    {R"("quantization_config": {"load_in_4bit": true})",
     "quantised checkpoints (unknown method) are not supported"},
    {R"("attention_bias": 1)", "attention_bias must be true or false, got 1"},
    {R"("mlp_bias": "false")", "mlp_bias must be true or false, got \"false\""},
    {R"("hidden_act": "gelu")", "hidden_act 'gelu' is not supported; supported: silu swish"},
    {R"("attn_temperature_tuning": true)",
     "not understood, results may be wrong: attn_temperature_tuning"},
    {R"("sliding_window": 4096)", "not understood, results may be wrong: sliding_window"},
    {R"("tie_word_embeddings": 1)", "tie_word_embeddings must be true or false, got 1"},
    {R"("num_hidden_layers": 2, "layer_types": ["full_attention"])",
     "layer_types has 1 entry, num_hidden_layers is 2"},
    {R"("num_hidden_layers": 1, "layer_types": ["linear_attention"])",
     "layer type 'linear_attention' is not supported; supported: full_attention"},
    {R"("num_hidden_layers": 2, "layer_types": ["full_attention", "sliding_attention"])",
     "layer_types says sliding_attention but there is no sliding_window"},
    {R"("num_hidden_layers": 1, "layer_types": ["sliding_attention"])",
     "layer_types says sliding_attention but there is no sliding_window"},
    {R"("num_hidden_layers": 1, "layer_types": "full_attention")",
     "layer_types must be a list of strings"},
    {R"("eos_token_id": [2, -2])", "eos_token_id must be an integer in -1..2147483647, got -2"},
    {R"("bos_token_id": 0.5)", "bos_token_id must be an integer in -1..2147483647, got 0.5"},
};

}  // namespace tessera
