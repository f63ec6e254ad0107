#include "model_loaders/weight_names.h"

#include <gtest/gtest.h>

#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

TEST(WeightNames, PutsTheLayerIn) {
  EXPECT_EQ(layer_weight_name(weight_names_for("llama").q_proj, 12),
            "model.layers.12.self_attn.q_proj.weight");
  EXPECT_EQ(weight_names_for("mistral").lm_head, "lm_head.weight");
  EXPECT_THROW(layer_weight_name("model.norm.weight", 0), Error);
}

TEST(WeightNames, NamesTheKnownFamilies) {
  EXPECT_EQ(thrown_error([] { weight_names_for("foo"); }).message,
            "no weight names for model type 'foo'; known: llama mistral");
}

TEST(WeightNames, KnowsWhatNobodyNeeds) {
  EXPECT_TRUE(is_ignorable_weight("model.layers.3.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(is_ignorable_weight("model.layers.3.self_attn.q_proj.weight"));
  EXPECT_FALSE(is_ignorable_weight(""));
}

}  // namespace
}  // namespace tessera
