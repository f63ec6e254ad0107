// What null means where it is not what the class does when the key is absent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/read_config.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(NullValues, LayersThatSlideByAPatternNeedAWindow) {
  const std::string none = R"(, "num_hidden_layers": 2, "sliding_window": null)";
  for (const char* const type : {"cohere2", "gemma2", "gemma3_text", "olmo3", "exaone4"}) {
    EXPECT_THAT(problem_of_type(type, none),
                HasSubstr("sliding_window is null, but layers of this"))
        << type;
    const ModelConfig full =
        config_of_type(type, none + R"(, "layer_types": ["full_attention", "full_attention"])");
    for (const LayerSpec& layer : full.block.layers) EXPECT_EQ(layer.sliding_window, 0) << type;
  }
}

TEST(NullValues, GlmMustTurnSomeFraction) {
  for (const char* const type : {"glm", "glm4"}) {
    for (const char* const keys :
         {R"(, "partial_rotary_factor": null)",
          R"(, "rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": null})"}) {
      EXPECT_THAT(problem_of_type(type, keys),
                  HasSubstr("partial_rotary_factor must be a number, got null"));
    }
  }
  EXPECT_EQ(config_of_type("phi3", R"(, "partial_rotary_factor": null)").rotary_dim(), 96);
}

TEST(NullValues, SeedOssWithoutAHeadDimDividesTheHiddenSize) {
  const std::string sizes = R"(, "hidden_size": 512, "num_attention_heads": 8)";
  EXPECT_EQ(config_of_type("seed_oss", sizes).head_dim, 128);
  EXPECT_EQ(config_of_type("seed_oss", sizes + R"(, "head_dim": null)").head_dim, 64);
}

TEST(NullValues, AreTheOnlySoftCapOfAttentionInGemma3) {
  EXPECT_EQ(
      config_of_type("gemma3_text", R"(, "attn_logit_softcapping": null)").block.attention_softcap,
      0);
  EXPECT_THAT(problem_of_type("gemma3_text", R"(, "attn_logit_softcapping": 50.0)"),
              HasSubstr("config.json: attn_logit_softcapping 50 is not supported"));
  EXPECT_EQ(
      config_of_type("gemma3_text", R"(, "final_logit_softcapping": 30.0)").block.logit_softcap,
      30.0);
}

}  // namespace
}  // namespace tessera
