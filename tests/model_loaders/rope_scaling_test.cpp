// What rope_scaling of config.json says of the context, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/model_loaders/read_config.h"

namespace tessera {
namespace {

using testing::HasSubstr;

TEST(RopeScaling, DynamicReachesFurther) {
  const ModelConfig config = config_of_type("llama", R"(, "max_position_embeddings": 64,
                                               "rope_scaling": {"type": "dynamic", "factor": 2.5})");
  EXPECT_EQ(config.max_position_embeddings, 160);
  EXPECT_EQ(config.rope_tables[0].scaling.original_max_position_embeddings, 64);
}

// What Qwen's model cards tell users to add for long texts.
TEST(RopeScaling, YarnReachesAsFarAsItsFactorSays) {
  const auto reach = [](const std::string& max_position_embeddings) {
    return config_of_type("qwen3", R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
        "original_max_position_embeddings": 32768}, "max_position_embeddings": )" +
                                       max_position_embeddings)
        .max_position_embeddings;
  };
  EXPECT_EQ(reach("40960"), 131072);
  EXPECT_EQ(reach("131072"), 131072);
  EXPECT_EQ(reach("262144"), 262144) << "config.json may say more";
}

// transformers 5 keeps the first name, which Phi-3's first files have, beside its own.
TEST(RopeScaling, BothNamesOfAKindMayStandBesideEachOther) {
  const std::string factors = R"("short_factor": [1, 1], "long_factor": [2, 2]})";
  const std::string sizes = R"(, "hidden_size": 8, "num_attention_heads": 2,
      "original_max_position_embeddings": 4096, "rope_parameters": {"rope_theta": 10000.0, )";
  const ModelConfig config =
      config_of_type("phi3", sizes + R"("rope_type": "longrope", "type": "yarn", )" + factors);
  EXPECT_EQ(config.rope_tables[0].scaling.kind, RopeScaling::Kind::kLongRope);
  EXPECT_THAT(
      problem_of_type("phi3", sizes + R"("rope_type": "longrope", "type": "linear", )" + factors),
      HasSubstr("rope_parameters.rope_type is 'longrope' but rope_parameters.type is 'linear'"));
}

}  // namespace
}  // namespace tessera
