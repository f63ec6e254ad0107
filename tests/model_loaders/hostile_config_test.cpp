// Values of config.json that must be refused, with what the person must see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ostream>

#include "model_loaders/hf_config.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

struct HostileConfig {
  std::string keys;     // beside model_type llama
  std::string message;  // a part of it

  friend std::ostream& operator<<(std::ostream& stream, const HostileConfig& config) {
    return stream << config.keys;
  }
};

std::vector<HostileConfig> hostile_sizes() {
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

const HostileConfig kHostileHeads[] = {
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

const HostileConfig kHostileRope[] = {
    {R"("rope_scaling": {"rope_type": "foo", "factor": 2.0})",
     "rope_scaling.rope_type 'foo' is not supported; supported: default linear llama3"},
    {R"("rope_scaling": {"type": "dynamic", "factor": 2.0})",
     "rope_scaling.type 'dynamic' is not supported"},
    {R"("rope_scaling": {"rope_type": "longrope", "long_factor": [1.0]})",
     "rope_scaling.rope_type 'longrope' is not supported"},
    {R"("rope_parameters": {"rope_type": "yarn", "factor": 2.0})",
     "rope_parameters.rope_type 'yarn' is not supported"},
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
    {R"("rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {})",
     "both rope_scaling and rope_parameters are given"},
    {R"("rope_theta": 1.5, "rope_parameters": {"rope_theta": 2.5})",
     "rope_theta is 1.5 but rope_parameters.rope_theta is 2.5"},
    {R"("rope_theta": 0)", "rope_theta must be a number in 1.."},
    {R"("rope_theta": "10000")", "rope_theta must be a number in 1.."},
    {R"("rope_parameters": {"sliding_attention": {"rope_theta": 2.5}})",
     "rope_parameters.full_attention is missing"},
    {R"("rope_parameters": {"partial_rotary_factor": 0.5})",
     "rope_parameters.partial_rotary_factor 0.5 is not supported"},
    {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor 0.5 is not supported"},
    {R"("rope_interleaved": true)", "rope_interleaved true is not supported"},
};

const HostileConfig kHostileSemantics[] = {
    {R"("quantization_config": {"quant_method": "gptq", "bits": 4})",
     "quantised checkpoints (gptq) are not supported"},
    {R"("quantization_config": {"load_in_4bit": true})",
     "quantised checkpoints (unknown method) are not supported"},
    {R"("attention_bias": true)", "attention_bias true is not supported"},
    {R"("mlp_bias": true)", "mlp_bias true is not supported"},
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
     "layer_types mixes full_attention and sliding_attention"},
    {R"("num_hidden_layers": 1, "layer_types": ["sliding_attention"])",
     "layer_types says sliding_attention but there is no sliding_window"},
    {R"("num_hidden_layers": 1, "layer_types": "full_attention")",
     "layer_types must be a list of strings"},
    {R"("eos_token_id": 32000)", "eos_token_id must be an integer in 0..31999, got 32000"},
    {R"("eos_token_id": [2, -1])", "eos_token_id must be an integer in 0..31999, got -1"},
    {R"("bos_token_id": 32000)", "bos_token_id must be an integer in 0..31999, got 32000"},
};

class HostileConfigs : public testing::TestWithParam<HostileConfig> {};

TEST_P(HostileConfigs, AreRefused) {
  const std::string text = R"({"model_type": "llama", )" + GetParam().keys + "}";
  std::vector<std::string> warnings;
  const ThrownError error = thrown_error(
      [&] { read_hf_config(JsonObject::parse(text, "config.json"), false, warnings); });
  EXPECT_THAT(error.message, AllOf(StartsWith("config.json: "), HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, HostileConfigs, testing::ValuesIn(hostile_sizes()));
INSTANTIATE_TEST_SUITE_P(Heads, HostileConfigs, testing::ValuesIn(kHostileHeads));
INSTANTIATE_TEST_SUITE_P(Rope, HostileConfigs, testing::ValuesIn(kHostileRope));
INSTANTIATE_TEST_SUITE_P(Semantics, HostileConfigs, testing::ValuesIn(kHostileSemantics));

ThrownError read_error(const std::string& text) {
  std::vector<std::string> warnings;
  return thrown_error(
      [&] { read_hf_config(JsonObject::parse(text, "config.json"), false, warnings); });
}

TEST(HostileArchitectures, AreRefused) {
  EXPECT_EQ(read_error(R"({"architectures": ["FooForCausalLM"], "model_type": "foo"})").message,
            "config.json: architecture 'FooForCausalLM' is not supported; supported: "
            "LlamaForCausalLM MistralForCausalLM");
  EXPECT_THAT(read_error(R"({"model_type": "foo"})").message,
              HasSubstr("model_type 'foo' is not supported; supported: LlamaForCausalLM"));
  EXPECT_THAT(read_error(R"({"architectures": ["FooForCausalLM"],
                             "auto_map": {"AutoConfig": "foo.Foo"}})")
                  .message,
              HasSubstr("architecture 'FooForCausalLM' needs custom code (auto_map)"));
  EXPECT_THAT(read_error("{}").message, HasSubstr("has neither architectures nor model_type"));
  EXPECT_THAT(read_error(R"({"architectures": [], "model_type": null})").message,
              HasSubstr("has neither architectures nor model_type"));
  EXPECT_THAT(
      read_error(R"({"architectures": ["LlamaForCausalLM"], "model_type": "mistral"})").message,
      HasSubstr("LlamaForCausalLM belongs to model_type 'llama', got 'mistral'"));
}

TEST(HostileConfigHints, SayWhatToDo) {
  EXPECT_THAT(read_error(R"({"model_type": "llama", "qk_norm": true})").hint,
              HasSubstr("--allow-unknown-config"));
  EXPECT_THAT(read_error(R"({"model_type": "llama", "quantization_config": {}})").hint,
              HasSubstr("bfloat16"));
}

}  // namespace
}  // namespace tessera
