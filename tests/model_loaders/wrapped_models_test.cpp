// Language models inside others, for example beside a vision tower: text_config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/read_config.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(WrappedModels, ALanguageModelInsideAnother) {
  const ModelConfig config = read_config(R"({
    "architectures": ["Gemma3ForConditionalGeneration"], "model_type": "gemma3",
    "boi_token_index": 255999, "eos_token_id": [1, 106], "image_token_index": 262144,
    "mm_tokens_per_image": 256, "torch_dtype": "bfloat16", "vision_config": {"hidden_size": 1152},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                    "use_cache": true, "sliding_window": 1024}})");
  EXPECT_EQ(config.model_type, "gemma3_text");
  EXPECT_EQ(config.architecture, "Gemma3ForConditionalGeneration");
  EXPECT_EQ(config.hidden_size, 2560);
  EXPECT_EQ(config.name_prefix, NamePrefix::kLanguageModel);
  EXPECT_EQ(config.dtype, DType::kBFloat16);
  EXPECT_EQ(config.block.embedding_multiplier, 50.5);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(1, 106));
  EXPECT_TRUE(config.ties_embeddings);

  const std::string mistral = R"({"model_type": "mistral3", "text_config": {"model_type": ")";
  EXPECT_EQ(read_config(mistral + R"(ministral3"}})").model_type, "ministral3");
  EXPECT_EQ(read_config(R"({"model_type": "mistral3", "text_config": {}})").model_type, "mistral");
  const auto error = [&](const std::string& text) {
    return thrown_error([&] { read_config(text); }).message;
  };
  EXPECT_THAT(error(mistral + R"(qwen2"}})"),
              HasSubstr("text_config.model_type 'qwen2' is not supported; supported: mistral "
                        "ministral3"));
  EXPECT_THAT(error(R"({"model_type": "mistral3"})"), HasSubstr("text_config is missing"));
  EXPECT_THAT(error(R"({"model_type": "mistral3", "text_config": {"odd": 1}})"),
              HasSubstr("results may be wrong: text_config.odd"));
  EXPECT_EQ(
      read_config(R"({"model_type": "mistral3", "text_config": {}, "is_encoder_decoder": false,
                          "add_cross_attention": false})")
          .model_type,
      "mistral");
  EXPECT_THAT(error(R"({"model_type": "mistral3", "text_config": {}, "is_encoder_decoder": true})"),
              HasSubstr("is_encoder_decoder true is not supported"));
  EXPECT_THAT(error(R"({"model_type": "mistral3", "text_config": {}, "odd": 1})"),
              HasSubstr("results may be wrong: odd"));
}

TEST(WrappedModels, HaveNoSoftCapOfLogits) {
  const auto gemma = [](const std::string& cap) {
    return read_config(R"({"model_type": "gemma3", "text_config": {"final_logit_softcapping": )" +
                       cap + "}}");
  };
  EXPECT_EQ(gemma("null").block.logit_softcap, 0.0);
  EXPECT_THAT(thrown_error([&] { gemma("30.0"); }).message,
              HasSubstr("config.json: text_config.final_logit_softcapping 30 is not supported"));
}

TEST(WrappedModels, OnlyAnExplicitFalseKeepsAMissingOutputMatrixMissing) {
  const auto mistral = [](const std::string& keys) {
    return read_config(R"({"model_type": "mistral3", "text_config": {})" + keys + "}");
  };
  EXPECT_FALSE(mistral("").is_untied);
  EXPECT_FALSE(mistral(R"(, "tie_word_embeddings": true)").is_untied);
  EXPECT_TRUE(mistral(R"(, "tie_word_embeddings": false)").is_untied);
}

}  // namespace
}  // namespace tessera
