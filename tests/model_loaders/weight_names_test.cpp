#include "model_loaders/weight_names.h"

#include <gtest/gtest.h>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

TEST(WeightNames, PutsTheIndicesIn) {
  EXPECT_EQ(weight_name("norm", {}, {}), "norm");
  EXPECT_EQ(weight_name("layers.{layer}.q", 12, {}), "layers.12.q");
  EXPECT_EQ(weight_name("layers.{layer}.experts.{expert}.up", 3, 0), "layers.3.experts.0.up");
}

TEST(WeightNames, RefusesAnIndexTooManyOrTooFew) {
  EXPECT_THROW(weight_name("norm", 0, {}), Error);
  EXPECT_THROW(weight_name("layers.{layer}.q", {}, {}), Error);
  EXPECT_THROW(weight_name("layers.{layer}.experts.{expert}.up", 3, {}), Error);
}

TEST(WeightNames, KnowsWhatNobodyNeeds) {
  EXPECT_TRUE(is_ignorable_weight("model.layers.3.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_ignorable_weight("model.layers.3.self_attn.q_proj.weight"));
  EXPECT_FALSE(is_ignorable_weight(""));
}

}  // namespace
}  // namespace tessera
