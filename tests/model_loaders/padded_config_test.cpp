#include "model_loaders/padded_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

ModelConfig small_model() {
  ModelConfig config;
  config.hidden_size = 48;
  config.intermediate_size = 100;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 16;
  config.rms_norm_eps = 1e-5;
  return config;
}
const PaddableSizes kLarger = {
    .hidden_size = 64, .intermediate_size = 104, .num_heads = 8, .head_dim = 32};

TEST(PaddedConfig, KeepsWhatDependsOnTheSizes) {
  const ModelConfig padded = padded_config(small_model(), kLarger);
  EXPECT_EQ(padded.sizes(), kLarger);
  EXPECT_EQ(padded.stored_sizes(), small_model().sizes());
  EXPECT_EQ(padded.rotary_dim(), 16);
  EXPECT_EQ(attention_scale(padded.block, padded.head_dim), 0.25f);
  EXPECT_DOUBLE_EQ(padded.rms_norm_eps, 0.75e-5);
}

TEST(PaddedConfig, KeepsWhatTheModelSays) {
  ModelConfig config = small_model();
  config.rotary.dim = 8;
  config.block.attention_scale = 0.5;
  const ModelConfig padded = padded_config(config, kLarger);
  EXPECT_EQ(padded.rotary_dim(), 8);
  EXPECT_EQ(padded.block.attention_scale, 0.5);
}

TEST(PaddedConfig, SizesThatFitStay) {
  const ModelConfig same = padded_config(small_model(), small_model().sizes());
  EXPECT_FALSE(same.stored);
  EXPECT_EQ(same.block, small_model().block);
}

// What a size cannot become, changed one by one.
void expect_refused(const ModelConfig& config, const PaddableSizes& sizes, const char* problem) {
  try {
    padded_config(config, sizes);
    ADD_FAILURE() << problem;
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), problem);
  }
}

TEST(PaddedConfig, RefusesAMeanOverZeros) {
  ModelConfig config = small_model();
  config.block.qk_norm = QkNorm::kLayerNormPerHead;
  config.block.norm = NormKind::kLayerNorm;
  PaddableSizes sizes = config.sizes();
  sizes.intermediate_size = 104;
  EXPECT_NO_THROW(padded_config(config, sizes));
  sizes.head_dim = 32;
  expect_refused(config, sizes,
                 "head_dim 16 cannot become 32: the LayerNorm of each head takes a mean over it");
  sizes = config.sizes();
  sizes.hidden_size = 64;
  expect_refused(config, sizes, "hidden_size 48 cannot become 64: LayerNorm takes a mean over it");
}

TEST(PaddedConfig, RefusesSizesThatDoNotHoldTheModel) {
  PaddableSizes sizes = kLarger;
  sizes.head_dim = 14;
  expect_refused(small_model(), sizes, "head_dim 16 cannot become 14");
  sizes = kLarger;
  sizes.num_heads = 7;
  expect_refused(small_model(), sizes,
                 "num_attention_heads 7 is no multiple of num_key_value_heads 2");
  expect_refused(padded_config(small_model(), kLarger), small_model().sizes(),
                 "a model that is filled up with zeros cannot be filled up again");
}

}  // namespace
}  // namespace tessera
