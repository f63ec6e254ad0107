#include "model_loaders/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/read_config.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// A Llama config with these further keys.
ModelConfig read_llama(const std::string& keys) {
  return read_config(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", )" + keys +
                     "}");
}

ModelConfig read_mistral(const std::string& keys) {
  return read_config(R"({"architectures": ["MistralForCausalLM"], "model_type": "mistral")" + keys +
                     "}");
}

// What all layers have.
int64_t window_of(const ModelConfig& config) {
  EXPECT_EQ(config.block.layers.size(), static_cast<size_t>(config.num_layers));
  EXPECT_THAT(config.block.layers, Each(config.block.layers.front()));
  return config.block.layers.front().sliding_window;
}

std::vector<int64_t> windows_of(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerSpec& layer : config.block.layers) windows.push_back(layer.sliding_window);
  return windows;
}

RopeTable rope_of(const ModelConfig& config) {
  EXPECT_THAT(config.rope_tables, SizeIs(1));
  EXPECT_EQ(config.block.layers.front().rope_table, 0);
  return config.rope_tables.front();
}

TEST(HfConfig, ReadsARealLlama) {
  const ModelConfig config = read_config(R"({
    "architectures": ["LlamaForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 128000, "eos_token_id": [128001, 128008, 128009], "head_dim": 64,
    "hidden_act": "silu", "hidden_size": 2048, "initializer_range": 0.02,
    "intermediate_size": 8192, "max_position_embeddings": 131072, "mlp_bias": false,
    "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16,
    "num_key_value_heads": 8, "pretraining_tp": 1, "rms_norm_eps": 1e-05,
    "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                     "original_max_position_embeddings": 8192, "rope_type": "llama3"},
    "rope_theta": 500000.0, "tie_word_embeddings": true, "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0.dev0", "use_cache": true, "vocab_size": 128256})");
  EXPECT_EQ(config.model_type, "llama");
  EXPECT_EQ(config.architecture, "LlamaForCausalLM");
  EXPECT_EQ(config.hidden_size, 2048);
  EXPECT_EQ(config.intermediate_size, 8192);
  EXPECT_EQ(config.num_layers, 16);
  EXPECT_EQ(config.num_heads, 32);
  EXPECT_EQ(config.num_kv_heads, 8);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocab_size, 128256);
  EXPECT_EQ(config.max_position_embeddings, 131072);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_EQ(rope_of(config).theta, 500000.0);
  EXPECT_EQ(rope_of(config).scaling.kind, RopeScaling::Kind::kLlama3);
  EXPECT_EQ(rope_of(config).scaling.factor, 32.0);
  EXPECT_EQ(rope_of(config).scaling.original_max_position_embeddings, 8192);
  EXPECT_EQ(window_of(config), 0);
  EXPECT_TRUE(config.ties_embeddings);
  EXPECT_EQ(config.dtype, DType::kBFloat16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(128001, 128008, 128009));
  EXPECT_EQ(config.bos_token_id, 128000);
}

TEST(HfConfig, FillsInTheDefaultsOfTheFamily) {
  const ModelConfig llama = read_config(R"({"architectures": ["LlamaForCausalLM"]})");
  EXPECT_EQ(llama.model_type, "llama");
  EXPECT_EQ(llama.hidden_size, 4096);
  EXPECT_EQ(llama.intermediate_size, 11008);
  EXPECT_EQ(llama.num_kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.max_position_embeddings, 2048);
  EXPECT_EQ(llama.rms_norm_eps, 1e-6);
  EXPECT_EQ(rope_of(llama).theta, 10000.0);
  EXPECT_EQ(window_of(llama), 0);
  EXPECT_FALSE(llama.ties_embeddings);
  EXPECT_EQ(llama.dtype, std::nullopt);
  EXPECT_THAT(llama.eos_token_ids, IsEmpty());

  const ModelConfig mistral = read_config(R"({"model_type": "mistral"})");
  EXPECT_EQ(mistral.architecture, "MistralForCausalLM");
  EXPECT_EQ(mistral.intermediate_size, 14336);
  EXPECT_EQ(mistral.num_kv_heads, 8);
  EXPECT_EQ(mistral.max_position_embeddings, 131072);
  EXPECT_EQ(window_of(mistral), 4096);
}

TEST(HfConfig, ReadsARealQwen3) {
  const ModelConfig config = read_config(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
    "hidden_size": 1024, "initializer_range": 0.02, "intermediate_size": 3072,
    "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "transformers_version": "4.51.0",
    "use_cache": true, "use_sliding_window": false, "vocab_size": 151936})");
  EXPECT_EQ(config.block.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(rope_of(config).theta, 1000000.0);
  EXPECT_EQ(window_of(config), 0);
  EXPECT_TRUE(config.ties_embeddings);
}

TEST(HfConfig, HeadsOfQwen3AreNotDerivedFromTheHiddenSize) {
  const std::string small = R"({"model_type": "qwen3", "hidden_size": 1024)";
  EXPECT_EQ(read_config(small + "}").head_dim, 128);
  EXPECT_EQ(read_config(small + R"(, "head_dim": null})").head_dim,
            32);  // not the default of the class
  EXPECT_EQ(read_config(small + R"(, "head_dim": 64})").head_dim, 64);
  EXPECT_EQ(read_config(small + R"(, "num_attention_heads": 96})").head_dim, 128);
  EXPECT_EQ(read_config(small + "}").num_kv_heads, 32);
}

TEST(HfConfig, AWindowOfQwen3IsOff) {
  const std::string qwen3 = R"({"model_type": "qwen3", "sliding_window": 16)";
  EXPECT_EQ(window_of(read_config(qwen3 + "}")), 0);
  EXPECT_EQ(window_of(read_config(qwen3 + R"(, "use_sliding_window": false})")), 0);
  const ModelConfig on = read_config(
      qwen3 + R"(, "use_sliding_window": true, "num_hidden_layers": 3, "max_window_layers": 2})");
  EXPECT_THAT(windows_of(on), ElementsAre(0, 0, 16));
}

TEST(HfConfig, TheBlockIsLlamas) {
  BlockSpec block{.layers = std::vector<LayerSpec>(2)};
  EXPECT_EQ(read_llama(R"("num_hidden_layers": 2)").block, block);
  EXPECT_EQ(read_llama(R"("num_hidden_layers": 2, "hidden_act": "swish")").block, block);
  for (LayerSpec& layer : block.layers) layer.sliding_window = 4096;
  EXPECT_EQ(read_mistral(R"(, "num_hidden_layers": 2)").block, block);
}

TEST(HfConfig, DerivesHeads) {
  EXPECT_EQ(read_llama(R"("num_attention_heads": 16)").num_kv_heads, 16);
  EXPECT_EQ(read_llama(R"("num_attention_heads": 16)").head_dim, 256);
  EXPECT_EQ(read_llama(R"("head_dim": null)").head_dim, 128);
  EXPECT_EQ(read_llama(R"("head_dim": 80)").head_dim, 80);
  EXPECT_EQ(read_mistral(R"(, "num_key_value_heads": null)").num_kv_heads, 32);
}

TEST(HfConfig, TellsAnAbsentWindowFromNone) {
  EXPECT_EQ(window_of(read_mistral("")), 4096);
  EXPECT_EQ(window_of(read_mistral(R"(, "sliding_window": null)")), 0);
  EXPECT_EQ(window_of(read_mistral(R"(, "sliding_window": 1024)")), 1024);
  EXPECT_EQ(window_of(read_llama(R"("sliding_window": null)")), 0);
}

// Qwen's switch, which tools leave in what they make of its models.
TEST(HfConfig, TakesASwitchOfWindowsThatChangesNothing) {
  EXPECT_EQ(window_of(read_llama(R"("use_sliding_window": false)")), 0);
  EXPECT_EQ(window_of(read_llama(R"("use_sliding_window": false, "sliding_window": 4096,
                                    "max_window_layers": 28)")),
            0);
  EXPECT_EQ(window_of(read_mistral(R"(, "sliding_window": null, "use_sliding_window": false)")), 0);
  EXPECT_EQ(window_of(read_mistral(R"(, "sliding_window": 16, "use_sliding_window": true)")), 16);
  EXPECT_THAT(problem_of_type("llama", R"(, "use_sliding_window": true, "sliding_window": 4096)"),
              HasSubstr("not understood, results may be wrong: sliding_window"));
}

// Only the classes of Qwen and SmolLM3 have the switch in transformers 5.24; what all others make
// of it is nothing.
TEST(HfConfig, KeepsAWindowThatTheClassHasNoSwitchFor) {
  const auto read = [](const std::string& type, const std::string& keys) {
    std::vector<std::string> warnings;
    const std::string text = R"({"model_type": ")" + type + R"(", "num_hidden_layers": 2,
        "sliding_window": 16, "use_sliding_window": false)" +
                             keys + "}";
    ModelConfig config = read_hf_config(JsonObject::parse(text, "c.json"), false, warnings);
    return std::pair(windows_of(config), warnings);
  };
  for (const char* const type :
       {"mistral", "ministral", "ministral3", "phi3", "gemma3_text", "olmo3", "cohere2"}) {
    const auto [windows, warnings] = read(type, "");
    EXPECT_THAT(windows, Each(16)) << type;
    EXPECT_THAT(warnings, ElementsAre(std::string("c.json: use_sliding_window is false, but the "
                                                  "sliding_window of 16 is kept: ") +
                                      type + " has no such switch in transformers 5"));
  }
  const auto [windows, warnings] = read("mistral", R"(,
      "layer_types": ["full_attention", "full_attention"])");
  EXPECT_THAT(windows, Each(0));
  EXPECT_THAT(warnings, IsEmpty());
}

TEST(HfConfig, AppliesUniformLayerTypes) {
  const std::string full = R"(, "num_hidden_layers": 2,
                              "layer_types": ["full_attention", "full_attention"])";
  const std::string sliding = R"(, "num_hidden_layers": 2,
                                 "layer_types": ["sliding_attention", "sliding_attention"])";
  EXPECT_EQ(window_of(read_mistral(full)), 0);
  EXPECT_EQ(window_of(read_mistral(sliding)), 4096);
  EXPECT_EQ(window_of(read_llama(full.substr(2))), 0);
}

// transformers 4 with either name of the kind, and transformers 5 flat and per layer type.
TEST(HfConfig, ReadsEverySpellingOfRope) {
  const std::string factors = R"("factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                 "original_max_position_embeddings": 8192)";
  for (const std::string& keys :
       {R"("rope_theta": 500.0, "rope_scaling": {"rope_type": "llama3", )" + factors + "}",
        R"("rope_theta": 500.0, "rope_scaling": {"type": "llama3", )" + factors + "}",
        R"("rope_theta": 500.0, "rope_scaling": {"type": "llama3", "rope_type": "llama3", )" +
            factors + "}",
        R"("rope_parameters": {"rope_theta": 500.0, "rope_type": "llama3", )" + factors + "}",
        R"("rope_theta": 500.0, "rope_parameters": {"rope_type": "llama3", )" + factors + "}",
        R"("rope_parameters": {"full_attention": {"rope_theta": 500.0, "rope_type": "llama3", )" +
            factors + "}}"}) {
    const ModelConfig config = read_llama(keys);
    EXPECT_EQ(rope_of(config).theta, 500.0) << keys;
    EXPECT_EQ(rope_of(config).scaling.kind, RopeScaling::Kind::kLlama3) << keys;
    EXPECT_EQ(rope_of(config).scaling.factor, 8.0) << keys;
    EXPECT_EQ(rope_of(config).scaling.low_freq_factor, 1.0) << keys;
    EXPECT_EQ(rope_of(config).scaling.high_freq_factor, 4.0) << keys;
    EXPECT_EQ(rope_of(config).scaling.original_max_position_embeddings, 8192) << keys;
  }
}

TEST(HfConfig, ReadsTheSimpleKindsOfRope) {
  for (const char* const keys :
       {R"("rope_scaling": null)", R"("rope_scaling": {"rope_type": "default"})",
        R"("rope_parameters": {"rope_type": "default"})", R"("rope_parameters": {})"}) {
    EXPECT_EQ(rope_of(read_llama(keys)).scaling.kind, RopeScaling::Kind::kNone) << keys;
    EXPECT_EQ(rope_of(read_llama(keys)).theta, 10000.0) << keys;
  }
  const ModelConfig linear = read_llama(R"("rope_scaling": {"type": "linear", "factor": 4})");
  EXPECT_EQ(rope_of(linear).scaling.kind, RopeScaling::Kind::kLinear);
  EXPECT_EQ(rope_of(linear).scaling.factor, 4.0);
}

TEST(HfConfig, SelectsRopeByLayerType) {
  const ModelConfig config = read_mistral(R"(, "rope_parameters": {
      "full_attention": {"rope_theta": 1000.0}, "sliding_attention": {"rope_theta": 2000.0}})");
  EXPECT_EQ(rope_of(config).theta, 2000.0);
}

TEST(HfConfig, KnowsBothNamesOfTheDtype) {
  EXPECT_EQ(read_llama(R"("dtype": "float16")").dtype, DType::kFloat16);
  EXPECT_EQ(read_llama(R"("torch_dtype": "float32")").dtype, DType::kFloat32);
  EXPECT_EQ(read_llama(R"("torch_dtype": "float8")").dtype, std::nullopt);
}

TEST(HfConfig, IgnoresWhatHasNoInfluence) {
  read_llama(R"("id2label": {"0": "a"}, "temperature": 0.6, "_name_or_path": "x", "top_p": 2,
                "auto_map": {"AutoModel": "m.M"}, "quantization_config": null,
                "rope_interleaved": false, "pad_token_id": -1, "partial_rotary_factor": 1.0,
                "attn_implementation": "sdpa", "output_router_logits": false,
                "what_no_tool_knows": null)");
}

TEST(HfConfig, TakesIdsOfNoTokenForNone) {
  EXPECT_THAT(read_llama(R"("eos_token_id": [-1, 2], "bos_token_id": -1)").eos_token_ids,
              ElementsAre(2));
  std::vector<std::string> warnings;
  const ModelConfig config = read_hf_config(
      JsonObject::parse(R"({"model_type": "llama", "bos_token_id": 32000})", "c.json"), false,
      warnings);
  EXPECT_EQ(config.bos_token_id, std::nullopt);
  EXPECT_THAT(warnings, ElementsAre("c.json: bos_token_id 32000 is no token of a vocabulary of "
                                    "32000; taken as if it were not there"));
}

TEST(HfConfig, WarnsOfUnknownKeysWhenAllowed) {
  const JsonObject json = JsonObject::parse(
      R"({"model_type": "llama", "attn_temperature_tuning": 4, "no_rope_layers": []})", "c.json");
  std::vector<std::string> warnings;
  read_hf_config(json, true, warnings);
  EXPECT_THAT(warnings, ElementsAre("c.json: not understood, results may be wrong: "
                                    "attn_temperature_tuning, no_rope_layers"));
}

}  // namespace
}  // namespace tessera
