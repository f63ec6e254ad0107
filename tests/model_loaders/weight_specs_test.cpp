#include "model_loaders/weight_specs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model_loaders/model_family.h"
#include "model_loaders/padded_config.h"
#include "tests/model_loaders/model_files.h"

namespace tessera {
namespace {

using testing::ElementsAre;

ModelConfig one_layer() {
  ModelConfig config = tiny_config();
  config.num_layers = 1;
  return config;
}

TEST(WeightSpecs, AreInTheOrderOfTheForwardPass) {
  std::vector<WeightRole> roles;
  for (const WeightSpec& spec : weight_specs(one_layer())) roles.push_back(spec.role);
  EXPECT_THAT(roles, ElementsAre(WeightRole::kEmbedTokens, WeightRole::kInputLayernorm,
                                 WeightRole::kQkvProj, WeightRole::kOProj,
                                 WeightRole::kPreFeedforwardLayernorm, WeightRole::kGateUpProj,
                                 WeightRole::kDownProj, WeightRole::kNorm, WeightRole::kLmHead));
}

TEST(WeightSpecs, HaveTheNamesAndShapesOfLlama) {
  std::vector<std::string> lines;
  for (const WeightSource& source : all_sources(one_layer())) {
    lines.push_back(concat(source.name, " ", source.shape, " ", source.shape_fields));
  }
  EXPECT_THAT(
      lines,
      ElementsAre(
          "model.embed_tokens.weight [10, 8] [vocab_size, hidden_size]",
          "model.layers.0.input_layernorm.weight [8] [hidden_size]",
          "model.layers.0.self_attn.q_proj.weight [8, 8] [num_attention_heads * head_dim, "
          "hidden_size]",
          "model.layers.0.self_attn.k_proj.weight [4, 8] [num_key_value_heads * head_dim, "
          "hidden_size]",
          "model.layers.0.self_attn.v_proj.weight [4, 8] [num_key_value_heads * head_dim, "
          "hidden_size]",
          "model.layers.0.self_attn.o_proj.weight [8, 8] [hidden_size, num_attention_heads * "
          "head_dim]",
          "model.layers.0.post_attention_layernorm.weight [8] [hidden_size]",
          "model.layers.0.mlp.gate_proj.weight [12, 8] [intermediate_size, hidden_size]",
          "model.layers.0.mlp.up_proj.weight [12, 8] [intermediate_size, hidden_size]",
          "model.layers.0.mlp.down_proj.weight [8, 12] [hidden_size, intermediate_size]",
          "model.norm.weight [8] [hidden_size]",
          "lm_head.weight [10, 8] [vocab_size, hidden_size]"));
}

TEST(WeightSpecs, NormsOfQueriesAndKeysComeWithTheBlockThatHasThem) {
  ModelConfig config = one_layer();
  config.model_type = "qwen3";
  config.block.qk_norm = QkNorm::kPerHead;
  const std::vector<WeightSpec> specs = weight_specs(config);
  const auto norm = std::ranges::find(specs, WeightRole::kQkNorm, &WeightSpec::role);
  ASSERT_NE(norm, specs.end());
  EXPECT_EQ((norm - 1)->role, WeightRole::kQkvProj);
  EXPECT_EQ(norm->shape, Shape({8}));
  ASSERT_EQ(norm->sources.size(), 2u);
  EXPECT_EQ(norm->sources[0].name, "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(norm->sources[1].name, "model.layers.0.self_attn.k_norm.weight");
  EXPECT_EQ(norm->sources[1].shape, Shape({4}));
  EXPECT_EQ(norm->sources[1].shape_fields, "[head_dim]");
}

// Matrices of heads in the checkpoint, one vector in memory.
TEST(WeightSpecs, NormsOfEachHeadAreAVector) {
  ModelConfig config = one_layer();
  config.model_type = "cohere";
  config.block.qk_norm = QkNorm::kLayerNormPerHead;
  config.rotary.is_interleaved = true;
  const std::vector<WeightSpec> specs = weight_specs(config);
  const auto norm = std::ranges::find(specs, WeightRole::kQkNorm, &WeightSpec::role);
  ASSERT_NE(norm, specs.end());
  EXPECT_EQ(norm->shape, Shape({12}));
  EXPECT_EQ(norm->shard_axis, ShardAxis::kRows);
  ASSERT_EQ(norm->sources.size(), 2u);
  EXPECT_EQ(norm->sources[0].name, "model.layers.0.self_attn.q_norm.weight");
  EXPECT_EQ(norm->sources[0].shape, Shape({2, 4}));
  EXPECT_EQ(norm->sources[0].shape_fields, "[num_attention_heads, head_dim]");
  EXPECT_THAT(norm->sources[0].transform.rows, ElementsAre(OrderedRows{8, AxisOrder::kHeads}));
  EXPECT_EQ(norm->sources[1].name, "model.layers.0.self_attn.k_norm.weight");
  EXPECT_EQ(norm->sources[1].shape, Shape({1, 4}));
  EXPECT_EQ(norm->sources[1].shape_fields, "[num_key_value_heads, head_dim]");
  EXPECT_THAT(norm->sources[1].transform.rows, ElementsAre(OrderedRows{4, AxisOrder::kHeads}));
}

TEST(WeightSpecs, NameTheLayer) {
  std::vector<std::optional<int64_t>> layers;
  for (const WeightSpec& spec : weight_specs(tiny_config())) {
    if (spec.role == WeightRole::kNorm || spec.role == WeightRole::kOProj) {
      layers.push_back(spec.layer);
    }
  }
  EXPECT_THAT(layers, ElementsAre(0, 1, std::nullopt));
}

TEST(WeightSpecs, HaveNoOutputMatrixWhenTied) {
  ModelConfig config = one_layer();
  config.ties_embeddings = true;
  EXPECT_EQ(weight_specs(config).back().role, WeightRole::kNorm);
}

// The output features of a first product and the input features of the second that follows it.
TEST(WeightSpecs, DevicesDivideHeadsAndFeatures) {
  for (const WeightSpec& spec : weight_specs(one_layer())) {
    const bool is_second = spec.role == WeightRole::kOProj || spec.role == WeightRole::kDownProj;
    const ShardAxis of_matrix = is_second ? ShardAxis::kColumns : ShardAxis::kRows;
    EXPECT_EQ(spec.shard_axis, spec.shape.rank() == 1 ? ShardAxis::kNone : of_matrix)
        << spec.sources.front().name;
  }
}

TEST(WeightSpecs, AShapeIsThatOfItsSourcesBelowEachOther) {
  for (const WeightSpec& spec : weight_specs(tiny_config())) {
    int64_t rows = 0;
    for (const WeightSource& source : spec.sources) {
      rows += source.shape[0];
      EXPECT_EQ(source.shape.rank(), spec.shape.rank());
      if (spec.shape.rank() == 2) {
        EXPECT_EQ(source.shape[1], spec.shape[1]);
      }
    }
    EXPECT_EQ(rows, spec.shape[0]) << spec.sources.front().name;
  }
}

TEST(WeightSpecs, EveryFamilyNamesEveryRoleAndNoTensorTwice) {
  for (const ModelFamily& family : model_families()) {
    ModelConfig config = tiny_config();
    config.model_type = family.model_type;
    config.block = family.block;
    config.block.biases = {.qkv = true, .output = true, .gate_up = true, .down = true};
    std::set<std::string> names;
    for (const WeightSource& source : all_sources(config)) {
      EXPECT_NE(source.name, "") << family.model_type;
      EXPECT_TRUE(names.insert(source.name).second) << family.model_type << ' ' << source.name;
    }
  }
}

WeightTransform transform_of(const ModelConfig& config, std::string_view name) {
  for (const WeightSource& source : all_sources(config)) {
    if (source.name == name) return source.transform;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(WeightSpecs, NothingChangesWhileLlamaIsRead) {
  for (const WeightSource& source : all_sources(one_layer())) {
    for (const OrderedRows& rows : source.transform.rows) {
      EXPECT_EQ(rows.order, AxisOrder::kAsStored) << source.name;
    }
    EXPECT_EQ(source.transform.columns, AxisOrder::kAsStored) << source.name;
    EXPECT_FALSE(source.transform.changes_values()) << source.name;
  }
}

TEST(WeightSpecs, NormsTakeTheirOffsetAndTheLastTheFactorOfLogits) {
  ModelConfig config = one_layer();
  config.block.qk_norm = QkNorm::kPerHead;
  config.norm_offset = 1.0;
  config.logit_multiplier = 0.25;
  const std::string layer = "model.layers.0.";
  for (const std::string& name :
       {layer + "input_layernorm.weight", layer + "post_attention_layernorm.weight",
        layer + "self_attn.q_norm.weight", layer + "self_attn.k_norm.weight"}) {
    EXPECT_EQ(transform_of(config, name).addend, 1.0) << name;
    EXPECT_EQ(transform_of(config, name).factor, 1.0) << name;
  }
  EXPECT_EQ(transform_of(config, "model.norm.weight").addend, 1.0);
  EXPECT_EQ(transform_of(config, "model.norm.weight").factor, 0.25);
  EXPECT_FALSE(transform_of(config, "lm_head.weight").changes_values());
}

TEST(WeightSpecs, HeadsOfQueriesAndKeysAreReordered) {
  ModelConfig config = one_layer();
  config.rotary.is_interleaved = true;
  config.block.biases.qkv = true;
  config.block.qk_norm = QkNorm::kPerHead;
  const std::string attention = "model.layers.0.self_attn.";
  const auto order_of = [&](const char* name) {
    const std::vector<OrderedRows> rows = transform_of(config, attention + name).rows;
    EXPECT_EQ(rows.size(), 1u) << name;
    return rows.front().order;
  };
  EXPECT_EQ(order_of("q_proj.weight"), AxisOrder::kHeads);
  EXPECT_EQ(order_of("q_proj.bias"), AxisOrder::kHeads);
  EXPECT_EQ(order_of("k_proj.weight"), AxisOrder::kHeads);
  EXPECT_EQ(order_of("k_norm.weight"), AxisOrder::kHeads);
  EXPECT_EQ(order_of("v_proj.weight"), AxisOrder::kAsStored);
  EXPECT_EQ(order_of("v_proj.bias"), AxisOrder::kAsStored);
  EXPECT_EQ(order_of("o_proj.weight"), AxisOrder::kAsStored);
  EXPECT_EQ(transform_of(config, attention + "o_proj.weight").columns, AxisOrder::kAsStored);
}

// Heads of 4 become heads of 16, two query heads of a KV head three.
TEST(WeightSpecs, ZerosAreAddedInMemoryAlone) {
  ModelConfig config = one_layer();
  config.block.biases.qkv = true;
  config.block.qk_norm = QkNorm::kPerHead;
  const std::vector<WeightSource> stored = all_sources(config);
  config = padded_config(
      config, {.hidden_size = 32, .intermediate_size = 17, .num_heads = 3, .head_dim = 16});
  const std::vector<WeightSource> padded = all_sources(config);
  ASSERT_EQ(padded.size(), stored.size());
  for (size_t i = 0; i < stored.size(); ++i) {
    EXPECT_EQ(padded[i].shape, stored[i].shape) << stored[i].name;
    EXPECT_EQ(padded[i].shape_fields, stored[i].shape_fields) << stored[i].name;
  }
  const std::vector<WeightSpec> specs = weight_specs(config);
  const auto shape_of = [&](WeightRole role) {
    return std::ranges::find(specs, role, &WeightSpec::role)->shape;
  };
  EXPECT_EQ(shape_of(WeightRole::kEmbedTokens), Shape({10, 32}));
  EXPECT_EQ(shape_of(WeightRole::kQkvProj), Shape({(3 + 2) * 16, 32}));
  EXPECT_EQ(shape_of(WeightRole::kQkvBias), Shape({(3 + 2) * 16}));
  EXPECT_EQ(shape_of(WeightRole::kQkNorm), Shape({2 * 16}));
  EXPECT_EQ(shape_of(WeightRole::kOProj), Shape({32, 3 * 16}));
  EXPECT_EQ(shape_of(WeightRole::kGateUpProj), Shape({2 * 17, 32}));
  EXPECT_EQ(shape_of(WeightRole::kDownProj), Shape({32, 17}));
  EXPECT_EQ(shape_of(WeightRole::kNorm), Shape({32}));

  const auto expect_orders = [&](const std::string& name, OrderedRows rows, AxisOrder columns) {
    const WeightTransform transform = transform_of(config, name);
    EXPECT_THAT(transform.rows, ElementsAre(rows)) << name;
    EXPECT_EQ(transform.columns, columns) << name;
  };
  using enum AxisOrder;
  const std::string layer = "model.layers.0.";
  expect_orders("model.embed_tokens.weight", {10, kAsStored}, kHidden);
  expect_orders(layer + "self_attn.q_proj.weight", {8, kQueries}, kHidden);
  expect_orders(layer + "self_attn.q_proj.bias", {8, kQueries}, kAsStored);
  expect_orders(layer + "self_attn.k_proj.weight", {4, kHeads}, kHidden);
  expect_orders(layer + "self_attn.v_proj.weight", {4, kHeads}, kHidden);
  expect_orders(layer + "self_attn.q_norm.weight", {4, kHeads}, kAsStored);
  expect_orders(layer + "self_attn.o_proj.weight", {8, kHidden}, kQueries);
  expect_orders(layer + "mlp.up_proj.weight", {12, kIntermediate}, kHidden);
  expect_orders(layer + "mlp.down_proj.weight", {8, kHidden}, kIntermediate);
  // Means over four times as many elements.
  EXPECT_EQ(transform_of(config, layer + "self_attn.q_norm.weight").factor, 0.5);
  EXPECT_EQ(transform_of(config, layer + "input_layernorm.weight").factor, 0.5);
}

TEST(WeightSpecs, OneNameIsATensorOfAllRows) {
  ModelConfig config = one_layer();
  config.model_type = "phi3";
  config.rotary.dim = 2;
  for (const WeightSource& source : all_sources(config)) {
    if (source.name == "model.layers.0.self_attn.qkv_proj.weight") {
      EXPECT_EQ(source.shape, Shape({16, 8}));
      EXPECT_EQ(source.shape_fields,
                "[num_attention_heads * head_dim + num_key_value_heads * head_dim + "
                "num_key_value_heads * head_dim, hidden_size]");
      EXPECT_THAT(source.transform.rows,
                  ElementsAre(OrderedRows{8, AxisOrder::kHeads}, OrderedRows{4, AxisOrder::kHeads},
                              OrderedRows{4, AxisOrder::kAsStored}));
    }
    if (source.name == "model.layers.0.mlp.gate_up_proj.weight") {
      EXPECT_EQ(source.shape, Shape({24, 8}));
    }
    EXPECT_FALSE(source.name.ends_with(".q_proj.weight")) << source.name;
  }
}

TEST(WeightSpecs, NamesInsideAnotherModel) {
  ModelConfig config = one_layer();
  config.name_prefix = NamePrefix::kLanguageModel;
  EXPECT_EQ(all_sources(config).front().name, "language_model.model.embed_tokens.weight");
  EXPECT_EQ(all_sources(config).back().name, "language_model.lm_head.weight");
  config.name_prefix = NamePrefix::kModelLanguageModel;
  EXPECT_EQ(all_sources(config).front().name, "model.language_model.embed_tokens.weight");
  EXPECT_EQ(all_sources(config).back().name, "lm_head.weight");
}

}  // namespace
}  // namespace tessera
