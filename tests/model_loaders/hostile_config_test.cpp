#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model_loaders/hf_config.h"
#include "tests/model_loaders/hostile_configs.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class HostileConfigs : public testing::TestWithParam<HostileConfig> {};

TEST_P(HostileConfigs, AreRefused) {
  const std::string text = R"({"model_type": "llama", )" + GetParam().keys + "}";
  std::vector<std::string> warnings;
  const ThrownError error = thrown_error(
      [&] { read_hf_config(JsonObject::parse(text, "config.json"), false, warnings); });
  EXPECT_THAT(error.message, AllOf(StartsWith("config.json: "), HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(Sizes, HostileConfigs, testing::ValuesIn(hostile_sizes()));
INSTANTIATE_TEST_SUITE_P(Heads, HostileConfigs, testing::ValuesIn(kHostileHeads));
INSTANTIATE_TEST_SUITE_P(Rope, HostileConfigs, testing::ValuesIn(kHostileRope));
INSTANTIATE_TEST_SUITE_P(Semantics, HostileConfigs, testing::ValuesIn(kHostileSemantics));

ThrownError config_error(const std::string& text) {
  std::vector<std::string> warnings;
  return thrown_error(
      [&] { read_hf_config(JsonObject::parse(text, "config.json"), false, warnings); });
}

TEST(HostileArchitectures, AreRefused) {
  EXPECT_EQ(
      config_error(R"({"architectures": ["FooForCausalLM"], "model_type": "foo"})").message,
      "config.json: architecture 'FooForCausalLM' is not supported; supported: "
      "LlamaForCausalLM MistralForCausalLM MinistralForCausalLM Ministral3ForCausalLM "
      "SmolLM3ForCausalLM GraniteForCausalLM SeedOssForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM "
      "Gemma2ForCausalLM Gemma3ForCausalLM Phi3ForCausalLM Olmo2ForCausalLM "
      "Olmo3ForCausalLM Exaone4ForCausalLM GlmForCausalLM Glm4ForCausalLM "
      "CohereForCausalLM Cohere2ForCausalLM Gemma3ForConditionalGeneration "
      "Mistral3ForConditionalGeneration");
  EXPECT_THAT(config_error(R"({"model_type": "foo"})").message,
              HasSubstr("model_type 'foo' is not supported; supported: LlamaForCausalLM"));
  EXPECT_THAT(config_error(R"({"architectures": ["FooForCausalLM"],
                             "auto_map": {"AutoConfig": "foo.Foo"}})")
                  .message,
              HasSubstr("architecture 'FooForCausalLM' needs custom code (auto_map)"));
  EXPECT_THAT(config_error("{}").message, HasSubstr("has neither architectures nor model_type"));
  EXPECT_THAT(config_error(R"({"architectures": [], "model_type": null})").message,
              HasSubstr("has neither architectures nor model_type"));
  EXPECT_THAT(
      config_error(R"({"architectures": ["LlamaForCausalLM"], "model_type": "mistral"})").message,
      HasSubstr("LlamaForCausalLM belongs to model_type 'llama', got 'mistral'"));
}

TEST(HostileConfigKeys, ManyUnknownOnesAreCounted) {
  std::string text = R"({"model_type": "llama")";
  for (int i = 0; i < 1000; ++i) text += concat(", \"unknown_", i, "\": 0");
  const std::string message = config_error(text + "}").message;
  EXPECT_THAT(message, HasSubstr("results may be wrong: unknown_0, unknown_1, "));
  EXPECT_THAT(message, HasSubstr(" and 990 more"));
  EXPECT_LT(message.size(), 300u);
}

TEST(HostileConfigHints, SayWhatToDo) {
  EXPECT_THAT(config_error(R"({"model_type": "llama", "qk_norm": true})").hint,
              HasSubstr("--allow-unknown-config"));
  EXPECT_THAT(config_error(R"({"model_type": "llama", "quantization_config": {}})").hint,
              HasSubstr("bfloat16"));
}

}  // namespace
}  // namespace tessera
