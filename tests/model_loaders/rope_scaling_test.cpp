// What rope_scaling of config.json says of the context, and in which words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

// The description and the only warning.
std::pair<ModelConfig, std::string> warned(const std::string& model_type, const std::string& keys) {
  std::vector<std::string> warnings;
  const std::string text = R"({"model_type": ")" + model_type + "\", " + keys + "}";
  ModelConfig config = read_hf_config(JsonObject::parse(text, "c.json"), false, warnings);
  EXPECT_THAT(warnings, testing::SizeIs(1));
  return {std::move(config), warnings.empty() ? "" : warnings[0]};
}

// transformers 4 writes the default of the class beside the parameters that 5 has written. What is
// taken is what AutoConfig of transformers 5.24 makes of these files.
TEST(RopeScaling, TakesTheParametersOfAFileThatTransformers4SavedAgain) {
  const auto [llama, warning] =
      warned("llama", R"("rope_theta": 1.5, "rope_parameters": {"rope_theta": 2.5})");
  EXPECT_EQ(llama.rope_tables[0].theta, 2.5);
  EXPECT_EQ(warning,
            "c.json: rope_theta is 1.5 but rope_parameters.rope_theta is 2.5; the latter is "
            "taken, as in transformers 5");
  const auto [phi, _] = warned("phi3", R"("partial_rotary_factor": 1.0,
      "rope_parameters": {"rope_theta": 2.5, "partial_rotary_factor": 0.75})");
  EXPECT_EQ(phi.rotary_dim(), 72);
  const auto [gemma, words] = warned("gemma3_text", R"("rope_local_base_freq": 10000.0,
      "rope_parameters": {"full_attention": {"rope_theta": 2500000.0},
                          "sliding_attention": {"rope_theta": 25000.0}})");
  EXPECT_EQ(gemma.rope_tables[0].theta, 25000.0);
  EXPECT_EQ(gemma.rope_tables[1].theta, 2500000.0);
  EXPECT_THAT(words, HasSubstr("rope_local_base_freq is 10000 but"));
}

TEST(RopeScaling, TakesThePlaceOfRopeParameters) {
  const std::string scaling = R"("rope_scaling": {"rope_type": "linear", "factor": 2.0})";
  const auto [config, warning] = warned(
      "llama", scaling + R"(, "rope_theta": 7.5, "rope_parameters": {"rope_type": "default"})");
  EXPECT_EQ(config.rope_tables[0].theta, 7.5);
  EXPECT_EQ(config.rope_tables[0].scaling.factor, 2.0);
  EXPECT_EQ(warning,
            "c.json: rope_scaling and rope_parameters differ; rope_scaling is taken, as in "
            "transformers 5");
  // Nothing is lost of these.
  for (const char* const keys :
       {R"(, "rope_parameters": {})",
        R"(, "rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 10000.0})"}) {
    EXPECT_EQ(config_of_type("llama", ", " + scaling + keys).rope_tables[0].scaling.factor, 2.0);
  }
  EXPECT_EQ(config_of_type("llama", R"(, "rope_scaling": {}, "rope_parameters": {"rope_theta": 5})")
                .rope_tables[0]
                .theta,
            5.0);
}

// As AutoConfig of transformers 5.24 has it.
TEST(RopeScaling, TakesThePlaceOfTheParametersOfAllLayerTypes) {
  const auto [config, warning] = warned("ministral", R"("num_hidden_layers": 2,
      "layer_types": ["full_attention", "sliding_attention"], "rope_theta": 7.5,
      "rope_scaling": {"rope_type": "linear", "factor": 4.0},
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0},
                          "sliding_attention": {"rope_type": "default", "rope_theta": 7.5}})");
  ASSERT_THAT(config.rope_tables, testing::SizeIs(1));
  EXPECT_EQ(config.rope_tables[0].theta, 7.5);
  EXPECT_EQ(config.rope_tables[0].scaling.factor, 4.0);
  EXPECT_THAT(warning, HasSubstr("rope_scaling is taken, as in transformers 5"));
  EXPECT_THAT(problem_of_type("ministral", R"(,
                  "rope_scaling": {"rope_type": "linear", "factor": 4.0},
                  "rope_parameters": {"full_attention": {"rope_theta": 10000.0},
                                      "sliding_attention": {"rope_theta": 5.0}})"),
              HasSubstr("rope_parameters.sliding_attention.rope_theta is 5, but rope_scaling"));
}

// Where layers with a window have a table of their own, it is the others that are stretched.
TEST(RopeScaling, IsPutOverTheParametersOfFullLayers) {
  for (const char* const family : {"gemma3_text", "olmo3"}) {
    const auto [config, warning] = warned(family, R"(
        "rope_scaling": {"rope_type": "linear", "factor": 4.0},
        "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
                            "sliding_attention": {"rope_type": "default", "rope_theta": 7.5}})");
    ASSERT_THAT(config.rope_tables, testing::SizeIs(2)) << family;
    EXPECT_EQ(config.rope_tables[0], (RopeTable{.theta = 7.5})) << family;
    EXPECT_EQ(config.rope_tables[1].theta, 1e6) << family;
    EXPECT_EQ(config.rope_tables[1].scaling.factor, 4.0) << family;
    EXPECT_THAT(warning, HasSubstr("rope_scaling is taken, as in transformers 5")) << family;
  }
  // Nothing is lost, and what rope_scaling leaves out stays as it was.
  const ModelConfig same = config_of_type("gemma3_text", R"(, "rope_scaling": {"factor": 4.0},
      "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 4.0},
                          "sliding_attention": {"rope_type": "default"}})");
  EXPECT_EQ(same.rope_tables[1].scaling.factor, 4.0);
  EXPECT_THAT(problem_of_type("gemma3_text", R"(, "rope_scaling": {"factor": 4.0},
                  "rope_parameters": {"full_attention": {"rope_type": "linear", "scale": 4.0},
                                      "sliding_attention": {"rope_type": "default"}})"),
              HasSubstr("rope_parameters.full_attention.scale is not understood"));
}

// What AutoConfig of transformers 5.24 makes of them.
TEST(RopeScaling, OfMinistral3HasItsOwnThetaWhereItIsNotGiven) {
  const auto theta = [](const std::string& keys) {
    return config_of_type("ministral3", keys).rope_tables[0].theta;
  };
  for (const char* const none :
       {"", R"(, "rope_scaling": null)", R"(, "rope_scaling": {})", R"(, "rope_theta": 1000000)"}) {
    EXPECT_EQ(theta(none), 1e6) << none;
  }
  EXPECT_EQ(theta(R"(, "rope_parameters": {"rope_type": "default"})"), 1e4);
  const std::string scaling = R"(, "rope_scaling": {"rope_type": "linear", "factor": 2.0})";
  EXPECT_EQ(theta(scaling), 1e4);
  EXPECT_EQ(theta(scaling + R"(, "rope_theta": 7.5)"), 7.5);
  const auto [config, warning] = warned("ministral3", R"("rope_theta": 7.5)");
  EXPECT_EQ(config.rope_tables[0].theta, 1e6);
  EXPECT_EQ(config.rope_tables[0].scaling.factor, 16.0);
  EXPECT_EQ(warning,
            "c.json: rope_theta is 7.5 but without rope_parameters it is 1e+06, as in "
            "transformers 5");
}

// So it is in transformers 4 and 5: the field of the class wins.
TEST(RopeScaling, OfPhi3HasItsOriginalContextBesideIt) {
  const auto original = [](const std::string& keys) {
    return config_of_type("phi3", R"(, "hidden_size": 8, "num_attention_heads": 2,
        "rope_scaling": {"type": "longrope", "short_factor": [1, 1], "long_factor": [2, 2],
                         "original_max_position_embeddings": 64})" +
                                      keys)
        .rope_tables[0]
        .scaling.original_max_position_embeddings;
  };
  EXPECT_EQ(original(""), 4096);
  EXPECT_EQ(original(R"(, "original_max_position_embeddings": 64)"), 64);
}

}  // namespace
}  // namespace tessera
