#include "model_loaders/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GenerationConfig generation_config_of(const std::string& text) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  return read_generation_config(folder.write("generation_config.json", text), 100, warnings);
}

TEST(GenerationConfig, IsEmptyWithoutAFile) {
  const TemporaryFolder folder;
  std::vector<std::string> warnings;
  const GenerationConfig config = read_generation_config(folder.path("absent.json"), 100, warnings);
  EXPECT_THAT(config.eos_token_ids, IsEmpty());
  EXPECT_EQ(config.do_sample, std::nullopt);
  EXPECT_EQ(config.temperature, std::nullopt);
}

TEST(GenerationConfig, ReadsSampling) {
  const GenerationConfig config =
      generation_config_of(R"({"eos_token_id": [2, 99], "bos_token_id": 1,
      "do_sample": true, "temperature": 0.6, "top_k": 0, "top_p": 0.9, "min_p": 0.05,
      "repetition_penalty": 1.1, "transformers_version": "4.45.0", "max_length": 4096})");
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2, 99));
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.do_sample, true);
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 0);
  EXPECT_EQ(config.top_p, 0.9);
  EXPECT_EQ(config.min_p, 0.05);
  EXPECT_EQ(config.repetition_penalty, 1.1);
}

TEST(GenerationConfig, AcceptsOneEosAndNulls) {
  const GenerationConfig config =
      generation_config_of(R"({"eos_token_id": 2, "temperature": null, "top_k": null})");
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config.temperature, std::nullopt);
}

// Tools write -1 where there is no token, and keep ids of a vocabulary that was larger.
TEST(GenerationConfig, TakesIdsOfNoTokenForNone) {
  std::vector<std::string> warnings;
  const TemporaryFolder folder;
  const GenerationConfig config = read_generation_config(
      folder.write("g.json", R"({"eos_token_id": [2, -1, 100], "bos_token_id": -1})"), 100,
      warnings);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2));
  EXPECT_EQ(config.bos_token_id, std::nullopt);
  EXPECT_THAT(warnings, ElementsAre(folder.path("g.json") +
                                    ": eos_token_id 100 is no token of a vocabulary of 100; taken "
                                    "as if it were not there"));
}

std::vector<std::string> warnings_of(const std::string& text) {
  std::vector<std::string> warnings;
  const TemporaryFolder folder;
  read_generation_config(folder.write("g.json", text), 100, warnings);
  return warnings;
}

TEST(GenerationConfig, WarnsOfWaysToDrawThatAreNotComputed) {
  EXPECT_THAT(
      warnings_of(R"({"no_repeat_ngram_size": 3, "typical_p": 0.5, "suppress_tokens": [7]})"),
      ElementsAre(HasSubstr("g.json: not supported, answers are drawn without: "
                            "no_repeat_ngram_size, suppress_tokens, typical_p")));
  EXPECT_THAT(warnings_of(R"({"stop_strings": "a", "watermarking_config": {}})"),
              ElementsAre(HasSubstr(": stop_strings, watermarking_config")));
}

TEST(GenerationConfig, DoesNotWarnOfValuesThatChangeNothing) {
  EXPECT_THAT(warnings_of(R"({"no_repeat_ngram_size": 0, "typical_p": 1.0, "num_beams": 1,
      "suppress_tokens": null, "bad_words_ids": [], "max_new_tokens": 40, "max_length": 20,
      "cache_implementation": "hybrid", "pad_token_id": 0})"),
              IsEmpty());
}

TEST(GenerationConfig, RefusesValuesOutOfRange) {
  const auto message = [](const std::string& text) {
    return thrown_error([&] { generation_config_of(text); }).message;
  };
  EXPECT_THAT(message(R"({"eos_token_id": "2"})"),
              HasSubstr("eos_token_id must be an integer in -1..2147483647, got \"2\""));
  EXPECT_THAT(message(R"({"eos_token_id": [2, -2]})"), HasSubstr("got -2"));
  EXPECT_THAT(message(R"({"temperature": -1})"),
              HasSubstr("temperature must be 0 or a number in 0.01..100, got -1"));
  EXPECT_THAT(message(R"({"temperature": NaN})"), HasSubstr("invalid JSON at byte"));
  EXPECT_THAT(message(R"({"top_p": 0})"),
              HasSubstr("top_p must be a number above 0 and at most 1, got 0"));
  EXPECT_THAT(message(R"({"top_p": 2})"), HasSubstr("top_p must be a number"));
  EXPECT_THAT(message(R"({"top_k": -5})"), HasSubstr("top_k must be an integer in -1.."));
  EXPECT_THAT(message(R"({"top_k": 1.5})"), HasSubstr("top_k must be an integer in -1.."));
  EXPECT_THAT(message(R"({"min_p": 1.5})"), HasSubstr("min_p must be a number in 0..1, got 1.5"));
  EXPECT_THAT(message(R"({"repetition_penalty": 0})"), HasSubstr("repetition_penalty must be"));
  EXPECT_THAT(message(R"({"do_sample": "yes"})"), HasSubstr("do_sample must be true or false"));
}

}  // namespace
}  // namespace tessera
