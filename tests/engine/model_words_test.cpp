#include "engine/model_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ModelConfig layers_of(std::vector<LayerSpec> layers) {
  ModelConfig config;
  config.num_layers = static_cast<int64_t>(layers.size());
  config.head_dim = 128;
  config.rope_tables = {{.theta = 1e6}};
  config.block.layers = std::move(layers);
  return config;
}

TEST(ModelWords, OfLlama) {
  const ModelWords words = describe_blocks(layers_of({{}, {}}));
  EXPECT_EQ(words.blocks, "RMSNorm before both halves, SiLU");
  EXPECT_EQ(words.windows, "");
  EXPECT_THAT(words.rope, ElementsAre("theta 1e+06, scaling none"));
  EXPECT_THAT(words.scalars, IsEmpty());
}

TEST(ModelWords, OfWhatOtherBlocksHave) {
  ModelConfig config = layers_of({{}});
  config.block.biases.qkv = true;
  config.block.norm_placement = NormPlacement::kPreAndPost;
  config.block.qk_norm = QkNorm::kPerHead;
  config.block.activation = Activation::kGeluTanh;
  config.norm_offset = 1.0;
  config.block.logit_softcap = 30.0;
  config.block.embedding_multiplier = 50.5;
  config.logit_multiplier = 0.25;
  const ModelWords words = describe_blocks(config);
  EXPECT_EQ(words.blocks,
            "RMSNorm with 1 + weight before and after both halves, biases of q, k, v, "
            "norms of q and k per head, GELU (tanh)");
  EXPECT_THAT(words.scalars,
              ElementsAre("embeddings times 50.5", "logits times 0.25", "logits capped at 30"));
}

TEST(ModelWords, OfNormsOfHeadsThatAreLayerNorm) {
  ModelConfig config = layers_of({{}});
  config.block.norm = NormKind::kLayerNorm;
  config.block.is_parallel = true;
  config.block.qk_norm = QkNorm::kLayerNormPerHead;
  EXPECT_EQ(describe_blocks(config).blocks,
            "LayerNorm before both halves at once, LayerNorm of q and k per head, SiLU");
}

TEST(ModelWords, OfLayersThatDiffer) {
  ModelConfig config = layers_of({{.sliding_window = 1024},
                                  {.sliding_window = 1024},
                                  {.sliding_window = 0, .rope_table = 1},
                                  {.sliding_window = 0, .rope_table = std::nullopt}});
  config.rope_tables.push_back({.theta = 5e5,
                                .scaling = {.kind = RopeScaling::Kind::kYarn,
                                            .factor = 8.0,
                                            .original_max_position_embeddings = 8192,
                                            .attention_factor = 1.25}});
  config.rotary.dim = 96;
  const ModelWords words = describe_blocks(config);
  EXPECT_EQ(words.windows, "2 of 4 layers see 1,024 tokens");
  EXPECT_THAT(
      words.rope,
      ElementsAre("theta 1e+06, scaling none, 96 of 128 elements of a head on 2 of 4 layers",
                  "theta 500000, scaling yarn by 8, amplitude 1.25, 96 of 128 elements of a head "
                  "on 1 of 4 layers",
                  "none on 1 of 4 layers"));
}

}  // namespace
}  // namespace tessera
