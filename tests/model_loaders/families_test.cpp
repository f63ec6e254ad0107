// What the rows of families say: class defaults, rules for layers, keys, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model_loaders/weight_specs.h"
#include "tests/model_loaders/read_config.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

std::vector<int64_t> windows(const ModelConfig& config) {
  std::vector<int64_t> windows;
  for (const LayerSpec& layer : config.block.layers) windows.push_back(layer.sliding_window);
  return windows;
}

// The table of each layer, -1 for none.
std::vector<int64_t> tables(const ModelConfig& config) {
  std::vector<int64_t> tables;
  for (const LayerSpec& layer : config.block.layers) {
    tables.push_back(layer.rope_table.value_or(-1));
  }
  return tables;
}

std::vector<std::string> names(const ModelConfig& config) {
  std::vector<std::string> names;
  for (const WeightSpec& spec : weight_specs(config)) {
    for (const WeightSource& source : spec.sources) names.push_back(source.name);
  }
  return names;
}

constexpr BiasSpec kNoBias = {};
constexpr BiasSpec kQkvBias = {.qkv = true};
constexpr BiasSpec kAttentionBias = {.qkv = true, .output = true};
constexpr BiasSpec kAllBiases = {.qkv = true, .output = true, .gate_up = true, .down = true};

TEST(Families, BiasesAreWhatEachClassMeansByItsKeys) {
  const std::string attention = R"(, "attention_bias": true)";
  for (const char* const type : {"llama", "qwen3", "gemma2", "gemma3_text", "smollm3", "granite",
                                 "olmo2", "olmo3", "cohere", "cohere2"}) {
    EXPECT_EQ(config_of_type(type).block.biases, kNoBias) << type;
    EXPECT_EQ(config_of_type(type, attention).block.biases, kAttentionBias) << type;
  }
  for (const char* const type : {"llama", "smollm3", "granite"}) {
    EXPECT_EQ(config_of_type(type, attention + R"(, "mlp_bias": true)").block.biases, kAllBiases)
        << type;
  }
  EXPECT_EQ(config_of_type("qwen2").block.biases, kQkvBias);
  for (const char* const type : {"glm", "glm4", "seed_oss"}) {
    EXPECT_EQ(config_of_type(type).block.biases, kQkvBias) << type;
    EXPECT_EQ(config_of_type(type, R"(, "attention_bias": false)").block.biases, kNoBias) << type;
  }
  EXPECT_EQ(config_of_type("seed_oss", R"(, "attention_out_bias": true)").block.biases,
            kAttentionBias);
  for (const char* const type : {"mistral", "phi3"}) {
    EXPECT_THAT(problem_of_type(type, attention),
                HasSubstr("attention_bias true is not supported"));
  }
}

TEST(Families, TiedEmbeddingsAreTheDefaultOfSome) {
  for (const char* const type : {"gemma2", "gemma3_text", "smollm3", "cohere", "cohere2"}) {
    EXPECT_TRUE(config_of_type(type).ties_embeddings) << type;
    EXPECT_FALSE(config_of_type(type, R"(, "tie_word_embeddings": false)").ties_embeddings) << type;
  }
  for (const char* const type : {"llama", "qwen2", "phi3", "granite", "olmo2", "glm4"}) {
    EXPECT_FALSE(config_of_type(type).ties_embeddings) << type;
  }
}

TEST(Families, Qwen2SlidesFromALayerOn) {
  const std::string window = R"(, "num_hidden_layers": 4, "sliding_window": 8)";
  const std::string on = window + R"(, "use_sliding_window": true)";
  EXPECT_THAT(windows(config_of_type("qwen2", window)), Each(0));
  EXPECT_THAT(windows(config_of_type("qwen2", on + R"(, "max_window_layers": 3)")),
              ElementsAre(0, 0, 0, 8));
  EXPECT_THAT(windows(config_of_type("qwen2", on)), Each(0));  // from layer 28 on
  EXPECT_THAT(windows(config_of_type("qwen2", on + R"(, "layer_types": ["sliding_attention",
                  "full_attention", "full_attention", "sliding_attention"])")),
              ElementsAre(8, 0, 0, 8));
}

TEST(Families, Gemma2) {
  const ModelConfig config =
      config_of_type("gemma2", R"(, "num_hidden_layers": 4, "hidden_size": 64)");
  EXPECT_EQ(config.block.norm_placement, NormPlacement::kPreAndPost);
  EXPECT_EQ(config.block.qk_norm, QkNorm::kNone);
  EXPECT_EQ(config.block.activation, Activation::kGeluTanh);
  EXPECT_EQ(config.block.attention_softcap, 50.0);
  EXPECT_EQ(config.block.logit_softcap, 30.0);
  EXPECT_EQ(config.block.attention_scale, 1.0 / 16.0);
  EXPECT_EQ(config.block.embedding_multiplier, 8.0);
  EXPECT_EQ(config.norm_offset, 1.0);
  EXPECT_EQ(config.head_dim, 256);
  EXPECT_THAT(windows(config), ElementsAre(4096, 0, 4096, 0));
  EXPECT_THAT(tables(config), Each(0));
  const ModelConfig other = config_of_type("gemma2", R"(, "query_pre_attn_scalar": 144,
      "attn_logit_softcapping": null, "final_logit_softcapping": 20.0, "hidden_act": "gelu")");
  EXPECT_EQ(other.block.attention_scale, 1.0 / 12.0);
  EXPECT_EQ(other.block.attention_softcap, 0.0);
  EXPECT_EQ(other.block.logit_softcap, 20.0);
  EXPECT_THAT(names(config), AllOf(Contains("model.layers.0.post_attention_layernorm.weight"),
                                   Contains("model.layers.0.pre_feedforward_layernorm.weight"),
                                   Contains("model.layers.0.post_feedforward_layernorm.weight")));
}

// As transformers casts the factor to the dtype of the embedding.
TEST(Families, GemmaRoundsTheFactorOfEmbeddings) {
  const std::string size = R"(, "hidden_size": 2560)";
  EXPECT_EQ(config_of_type("gemma3_text", size + R"(, "torch_dtype": "bfloat16")")
                .block.embedding_multiplier,
            50.5);
  EXPECT_EQ(
      config_of_type("gemma3_text", size + R"(, "dtype": "float32")").block.embedding_multiplier,
      static_cast<double>(std::sqrt(2560.0f)));
}

TEST(Families, Gemma3HasTwoTables) {
  const std::string layers = R"(, "num_hidden_layers": 7)";
  const ModelConfig config = config_of_type("gemma3_text", layers);
  EXPECT_EQ(config.block.qk_norm, QkNorm::kPerHead);
  EXPECT_EQ(config.block.attention_softcap, 0.0);
  EXPECT_THAT(windows(config), ElementsAre(4096, 4096, 4096, 4096, 4096, 0, 4096));
  EXPECT_THAT(tables(config), ElementsAre(0, 0, 0, 0, 0, 1, 0));
  EXPECT_EQ(config.rope_tables[0], (RopeTable{.theta = 1e4}));
  EXPECT_EQ(config.rope_tables[1], (RopeTable{.theta = 1e6}));

  const std::string old_names = R"(, "sliding_window_pattern": 2, "sliding_window": 512,
      "rope_theta": 2e6, "rope_local_base_freq": 2e4,
      "rope_scaling": {"rope_type": "linear", "factor": 8.0})";
  const std::string new_names = R"(, "sliding_window_pattern": 2, "sliding_window": 512,
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0,
                                             "rope_theta": 2e6},
                          "sliding_attention": {"rope_type": "default", "rope_theta": 2e4}})";
  for (const std::string& keys : {old_names, new_names}) {
    const ModelConfig scaled = config_of_type("gemma3_text", R"(, "num_hidden_layers": 2)" + keys);
    EXPECT_THAT(windows(scaled), ElementsAre(512, 0));
    ASSERT_THAT(scaled.rope_tables, SizeIs(2));
    EXPECT_EQ(scaled.rope_tables[0], (RopeTable{.theta = 2e4}));
    EXPECT_EQ(scaled.rope_tables[1].theta, 2e6);
    EXPECT_EQ(scaled.rope_tables[1].scaling.kind, RopeScaling::Kind::kLinear);
    EXPECT_EQ(scaled.rope_tables[1].scaling.factor, 8.0);
  }
  EXPECT_THAT(problem_of_type("gemma3_text", R"(, "rope_parameters": {"rope_theta": 2e6})"),
              HasSubstr("rope_parameters must be given per layer type"));
  EXPECT_THAT(problem_of_type("gemma3_text", R"(, "use_bidirectional_attention": true)"),
              HasSubstr("use_bidirectional_attention true is not supported"));
}

TEST(Families, Olmo3ScalesFullLayersOnly) {
  const ModelConfig config = config_of_type("olmo3", R"(, "num_hidden_layers": 4, "rope_theta": 5e5,
      "max_position_embeddings": 65536,
      "rope_scaling": {"rope_type": "yarn", "factor": 8.0, "attention_factor": 1.2079441541679836,
                       "original_max_position_embeddings": 8192, "beta_fast": 32.0,
                       "beta_slow": 1.0, "truncate": false})");
  EXPECT_THAT(windows(config), ElementsAre(4096, 4096, 4096, 0));
  EXPECT_THAT(tables(config), ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(config.rope_tables[0], (RopeTable{.theta = 5e5}));
  EXPECT_EQ(config.rope_tables[1].scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(config.rope_tables[1].scaling.attention_factor, 1.2079441541679836);
  EXPECT_TRUE(config.rope_tables[1].scaling.truncate);  // transformers does not see it there
  EXPECT_THAT(config_of_type("olmo3").rope_tables, ElementsAre(RopeTable{.theta = 5e5}));
}

TEST(Families, PostNormFamiliesHaveNoNormsBefore) {
  for (const char* const type : {"olmo2", "olmo3", "exaone4"}) {
    const ModelConfig config = config_of_type(type);
    EXPECT_EQ(config.block.norm_placement, NormPlacement::kPost) << type;
    EXPECT_THAT(names(config), AllOf(Contains("model.layers.0.post_attention_layernorm.weight"),
                                     Contains("model.layers.0.post_feedforward_layernorm.weight"),
                                     Not(Contains("model.layers.0.input_layernorm.weight"))))
        << type;
  }
  EXPECT_EQ(config_of_type("olmo2").block.qk_norm, QkNorm::kWholeProjection);
  EXPECT_EQ(config_of_type("exaone4").block.qk_norm, QkNorm::kPerHead);
}

TEST(Families, ContextsOfDualChunkAttentionEndWhereItWouldBegin) {
  const std::string sizes = R"(, "num_hidden_layers": 1, "max_position_embeddings": 1010000)";
  const std::string dual_chunk = R"(, "dual_chunk_attention_config":
      {"chunk_size": 262144, "local_size": 8192, "original_max_position_embeddings": 262144})";
  EXPECT_EQ(config_of_type("qwen2", sizes).max_position_embeddings, 1010000);
  EXPECT_EQ(config_of_type("qwen2", sizes + dual_chunk).max_position_embeddings, 262144);
  EXPECT_EQ(config_of_type("qwen2", sizes + dual_chunk).block,
            config_of_type("qwen2", sizes).block);
  EXPECT_THAT(problem_of_type("qwen2", R"(, "dual_chunk_attention_config": {})"),
              HasSubstr("dual_chunk_attention_config.original_max_position_embeddings"));
  EXPECT_THAT(problem_of_type("qwen3", dual_chunk), HasSubstr("results may be wrong: dual_chunk"));
}

TEST(Families, Exaone4RotatesWhereItSlidesIfItSlides) {
  const std::string layers = R"(, "num_hidden_layers": 4)";
  EXPECT_THAT(windows(config_of_type("exaone4", layers)), ElementsAre(4096, 4096, 4096, 0));
  EXPECT_THAT(tables(config_of_type("exaone4", layers)), ElementsAre(0, 0, 0, -1));
  const std::string full = R"(, "num_hidden_layers": 2, "sliding_window": null,
      "layer_types": ["full_attention", "full_attention"], "sliding_window_pattern": )";
  for (const char* const pattern : {"null", "0"}) {  // as published, and as transformers saves it
    EXPECT_THAT(windows(config_of_type("exaone4", full + pattern)), Each(0));
    EXPECT_THAT(tables(config_of_type("exaone4", full + pattern)), Each(0));
  }
  EXPECT_THAT(problem_of_type("exaone4", R"(, "sliding_window_pattern": 0)"),
              HasSubstr("sliding_window_pattern must be an integer in 1.."));
  EXPECT_THAT(tables(config_of_type("exaone4",
                                    R"(, "num_hidden_layers": 2, "sliding_window_pattern": "LLLG",
                                        "layer_types": ["sliding_attention", "full_attention"])")),
              ElementsAre(0, -1));
  EXPECT_THAT(problem_of_type("exaone4", R"(, "sliding_window_pattern": "LLLG")"),
              HasSubstr("sliding_window_pattern must be an integer"));
}

TEST(Families, Cohere2RotatesWhereItSlides) {
  const ModelConfig config = config_of_type("cohere2", R"(, "num_hidden_layers": 8)");
  EXPECT_THAT(windows(config), ElementsAre(4096, 4096, 4096, 0, 4096, 4096, 4096, 0));
  EXPECT_THAT(tables(config), ElementsAre(0, 0, 0, -1, 0, 0, 0, -1));
  EXPECT_EQ(config.rope_tables[0].theta, 1e4);
  EXPECT_TRUE(config.rotary.is_interleaved);
  EXPECT_EQ(config.block.norm, NormKind::kLayerNorm);
  EXPECT_TRUE(config.block.is_parallel);
  EXPECT_EQ(config.logit_multiplier, 0.0625);
  EXPECT_THAT(names(config), Not(Contains("model.layers.0.post_attention_layernorm.weight")));
}

TEST(Families, CohereReadsItsOwnEpsilon) {
  EXPECT_EQ(config_of_type("cohere").rms_norm_eps, 1e-5);
  const ModelConfig config = config_of_type(
      "cohere", R"(, "layer_norm_eps": 1e-4, "logit_scale": 0.25, "use_qk_norm": false)");
  EXPECT_EQ(config.rms_norm_eps, 1e-4);
  EXPECT_EQ(config.logit_multiplier, 0.25);
  EXPECT_EQ(config.rope_tables[0].theta, 5e5);
  EXPECT_THAT(problem_of_type("cohere2", R"(, "position_embedding_type": "rope_neox")"),
              HasSubstr("'rope_neox' is not supported; supported: rope_gptj"));
  EXPECT_THAT(problem_of_type("cohere2", R"(, "use_parallel_block": false)"),
              HasSubstr("use_parallel_block false is not supported"));
}

TEST(Families, CohereMayBeTrainedForMoreThanItsPositions) {
  const auto context = [](const std::string& more) {
    return config_of_type("cohere", R"(, "max_position_embeddings": 8192)" + more)
        .max_position_embeddings;
  };
  EXPECT_EQ(context(""), 8192);
  EXPECT_EQ(context(R"(, "model_max_length": null)"), 8192);
  EXPECT_EQ(context(R"(, "model_max_length": 131072)"), 131072);
  EXPECT_THAT(problem_of_type("cohere", R"(, "model_max_length": 0)"),
              HasSubstr("model_max_length"));
}

TEST(Families, CohereMayHaveNormsOfHeads) {
  constexpr std::string_view kQueryNorm = "model.layers.0.self_attn.q_norm.weight";
  EXPECT_EQ(config_of_type("cohere").block.qk_norm, QkNorm::kNone);
  EXPECT_EQ(config_of_type("cohere", R"(, "use_qk_norm": null)").block.qk_norm, QkNorm::kNone);
  EXPECT_THAT(names(config_of_type("cohere", R"(, "use_qk_norm": false)")),
              Not(Contains(kQueryNorm)));
  const ModelConfig config = config_of_type("cohere", R"(, "use_qk_norm": true)");
  EXPECT_EQ(config.block.qk_norm, QkNorm::kLayerNormPerHead);
  EXPECT_THAT(names(config), Contains(kQueryNorm));
  EXPECT_THAT(problem_of_type("cohere", R"(, "use_qk_norm": 1)"),
              HasSubstr("use_qk_norm must be true or false, got 1"));
  EXPECT_EQ(config_of_type("cohere2", R"(, "use_qk_norm": false)").block.qk_norm, QkNorm::kNone);
  EXPECT_THAT(problem_of_type("cohere2", R"(, "use_qk_norm": true)"),
              HasSubstr("use_qk_norm true is not supported"));
}

TEST(Families, SmolLm3LeavesLayersWithoutRotation) {
  EXPECT_THAT(tables(config_of_type("smollm3", R"(, "num_hidden_layers": 5)")),
              ElementsAre(0, 0, 0, -1, 0));
  EXPECT_THAT(
      tables(config_of_type("smollm3", R"(, "num_hidden_layers": 4, "no_rope_layer_interval": 2)")),
      ElementsAre(0, -1, 0, -1));
  const std::string listed = R"(, "num_hidden_layers": 2, "no_rope_layers": [0, 1, 1])";
  EXPECT_THAT(tables(config_of_type("smollm3", listed)), ElementsAre(-1, 0));
  EXPECT_THAT(windows(config_of_type("smollm3", listed + R"(, "sliding_window": 8)")), Each(0));
  EXPECT_THAT(windows(config_of_type("smollm3", listed + R"(, "sliding_window": 8,
                                                   "use_sliding_window": true)")),
              ElementsAre(8, 0));
  EXPECT_EQ(config_of_type("smollm3").rope_tables[0].theta, 2e6);
  EXPECT_THAT(problem_of_type("smollm3", R"(, "num_hidden_layers": 2, "no_rope_layers": [1])"),
              HasSubstr("no_rope_layers has 1 entry, num_hidden_layers is 2"));
}

TEST(Families, GraniteMultiplies) {
  const ModelConfig none = config_of_type("granite");
  EXPECT_EQ(none.block.attention_scale, 1.0);
  EXPECT_EQ(none.logit_multiplier, 1.0);
  const ModelConfig config = config_of_type("granite", R"(, "embedding_multiplier": 12.0,
      "attention_multiplier": 0.0078125, "residual_multiplier": 0.22, "logits_scaling": 16.0)");
  EXPECT_EQ(config.block.embedding_multiplier, 12.0);
  EXPECT_EQ(config.block.attention_scale, 0.0078125);
  EXPECT_EQ(config.block.residual_multiplier, 0.22);
  EXPECT_EQ(config.logit_multiplier, 1.0 / 16.0);
}

TEST(Families, GlmTurnsHalfOfEachHead) {
  for (const char* const type : {"glm", "glm4"}) {
    const ModelConfig config = config_of_type(type);
    EXPECT_EQ(config.rotary, (RotaryLayout{.dim = 64, .is_interleaved = true})) << type;
    EXPECT_EQ(config.rms_norm_eps, 1.5625e-7) << type;
    EXPECT_EQ(config_of_type(type, R"(, "partial_rotary_factor": 1.0)").rotary_dim(), 128) << type;
    EXPECT_THAT(names(config), Contains("model.layers.0.mlp.gate_up_proj.weight")) << type;
  }
  EXPECT_EQ(config_of_type("glm").block.norm_placement, NormPlacement::kPre);
  EXPECT_THAT(names(config_of_type("glm4")),
              AllOf(Contains("model.layers.0.post_self_attn_layernorm.weight"),
                    Contains("model.layers.0.post_attention_layernorm.weight"),
                    Contains("model.layers.0.post_mlp_layernorm.weight")));
}

TEST(Families, Phi3StretchesByLongRope) {
  const std::string sizes = R"(, "hidden_size": 32, "num_attention_heads": 2,
      "max_position_embeddings": 131072, "partial_rotary_factor": 0.5)";
  const std::string factors = R"("short_factor": [1, 1.5, 2, 3], "long_factor": [4, 5, 6, 7.5])";
  for (const char* const type : {"longrope", "su", "yarn"}) {
    const ModelConfig config = config_of_type(
        "phi3", sizes + concat(R"(, "rope_scaling": {"type": ")", type, "\", ", factors, "}"));
    EXPECT_EQ(config.rotary, (RotaryLayout{.dim = 8}));
    const RopeScaling& scaling = config.rope_tables[0].scaling;
    EXPECT_EQ(scaling.kind, RopeScaling::Kind::kLongRope);
    EXPECT_EQ(scaling.original_max_position_embeddings, 4096);
    EXPECT_THAT(scaling.short_factors, ElementsAre(1, 1.5, 2, 3));
    EXPECT_THAT(scaling.long_factors, ElementsAre(4, 5, 6, 7.5));
    EXPECT_DOUBLE_EQ(scaling.attention_factor, std::sqrt(1.0 + std::log(32.0) / std::log(4096.0)));
  }
  EXPECT_THAT(windows(config_of_type("phi3", R"(, "sliding_window": 2047)")), Each(2047));
  EXPECT_THAT(windows(config_of_type("phi3")), Each(0));
  EXPECT_THAT(problem_of_type("phi3", R"(, "partial_rotary_factor": 0.01)"),
              HasSubstr("must be even"));
  EXPECT_THAT(problem_of_type("phi3", R"(, "full_attn_mod": 2)"), HasSubstr("full_attn_mod 2"));
}

TEST(Families, Ministral3ScalesQueries) {
  const ModelConfig absent = config_of_type("ministral3");
  EXPECT_EQ(absent.block.query_scaling.beta, 0.1);
  EXPECT_EQ(absent.block.query_scaling.original_max_position_embeddings, 16384);
  EXPECT_EQ(absent.rope_tables[0].theta, 1e6);
  EXPECT_EQ(absent.rope_tables[0].scaling.kind, RopeScaling::Kind::kYarn);
  EXPECT_EQ(absent.rope_tables[0].scaling.attention_factor, 1.0);
  EXPECT_THAT(windows(absent), Each(0));
  const ModelConfig given = config_of_type("ministral3", R"(, "rope_parameters": {"type": "yarn",
      "rope_theta": 2e6, "factor": 4.0, "original_max_position_embeddings": 8192, "mscale": 1.0,
      "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.2, "max_position_embeddings": 262144})");
  EXPECT_EQ(given.block.query_scaling.beta, 0.2);
  EXPECT_EQ(given.block.query_scaling.original_max_position_embeddings, 8192);
  EXPECT_EQ(given.rope_tables[0].scaling.attention_factor, 1.0);
  EXPECT_EQ(config_of_type("ministral3", R"(, "rope_parameters": {"rope_type": "default"})")
                .block.query_scaling,
            QueryScalingSpec{});
}

TEST(Families, AttentionFactorsOfYarn) {
  const auto factor = [](const std::string& keys) {
    return config_of_type("qwen3",
                          R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0)" + keys + "}")
        .rope_tables[0]
        .scaling.attention_factor;
  };
  const double plain = 0.1 * std::log(4.0) + 1.0;
  EXPECT_DOUBLE_EQ(factor(""), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 2.0)"), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "finetuned": true)"), plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "mscale": 2.0, "mscale_all_dim": 1.0)"),
                   (0.2 * std::log(4.0) + 1.0) / plain);
  EXPECT_DOUBLE_EQ(factor(R"(, "attention_factor": 1.5)"), 1.5);
  // DeepSeek-R1-0528-Qwen3-8B: the two make nothing of each other.
  EXPECT_DOUBLE_EQ(factor(R"(, "attn_factor": 0.8782488562869419)"), 1.0);
  EXPECT_DOUBLE_EQ(factor(R"(, "attention_factor": 1.5, "attn_factor": 2.0)"), 1.5);
}

// transformers writes the attribute that it read sliding_window_pattern into, beside layer_types.
TEST(Families, WhatTransformersRemembersOfAPatternSaysNothing) {
  for (const std::string type : {"gemma3_text", "cohere2"}) {
    const ModelConfig config =
        config_of_type(type, R"(, "num_hidden_layers": 2, "sliding_window": 512,
        "_sliding_window_pattern": 6, "layer_types": ["full_attention", "sliding_attention"])");
    EXPECT_THAT(windows(config), ElementsAre(0, 512)) << type;
  }
  EXPECT_THAT(problem_of_type("gemma3_text", R"(, "_sliding_window_pattern": "LLLG")"),
              HasSubstr("_sliding_window_pattern must be an integer"));
}

}  // namespace
}  // namespace tessera
