#include "engine/model/sampling_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace tessera {
namespace {

std::string problem_of(const SamplingParams& params) {
  try {
    validate(params);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SamplingParams, DefaultsAreValid) { EXPECT_EQ(problem_of(SamplingParams{}), ""); }

TEST(SamplingParams, AnAnswerIsNotShorterThanItMayBe) {
  EXPECT_EQ(problem_of({.max_tokens = 5, .min_tokens = 5}), "");
  EXPECT_EQ(problem_of({.max_tokens = 0, .min_tokens = 5}), "") << "0: no limit";
  EXPECT_EQ(problem_of({.max_tokens = 4, .min_tokens = 5}),
            "min_tokens is 5, but max_tokens only 4");
}

TEST(SamplingParams, EveryFieldIsCheckedByName) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  struct Case {
    const char* field;
    std::function<void(SamplingParams&)> change;
  };
  const Case cases[] = {
      {"temperature", [](auto& p) { p.temperature = -1; }},
      {"temperature", [&](auto& p) { p.temperature = nan; }},
      {"temperature", [](auto& p) { p.temperature = 101; }},
      {"top_k", [](auto& p) { p.top_k = -5; }},
      {"top_p", [](auto& p) { p.top_p = 0; }},
      {"top_p", [](auto& p) { p.top_p = 2; }},
      {"top_p", [&](auto& p) { p.top_p = nan; }},
      {"min_p", [](auto& p) { p.min_p = -0.1; }},
      {"min_p", [](auto& p) { p.min_p = 1.1; }},
      {"repetition_penalty", [](auto& p) { p.repetition_penalty = 0; }},
      {"presence_penalty", [](auto& p) { p.presence_penalty = 3; }},
      {"frequency_penalty", [](auto& p) { p.frequency_penalty = -3; }},
      {"repeat_last_n", [](auto& p) { p.penalty_window = -1; }},
      {"max_tokens", [](auto& p) { p.max_tokens = -1; }},
      {"stop string", [](auto& p) { p.stop = {""}; }},
  };
  for (const Case& test : cases) {
    SamplingParams params;
    test.change(params);
    EXPECT_THAT(problem_of(params), testing::HasSubstr(test.field));
  }
}

TEST(DefaultSampling, IsGreedyUnlessTheModelSamples) {
  GenerationConfig generation;
  generation.temperature = 0.7;
  EXPECT_EQ(default_sampling(generation).temperature, 0.0);
  generation.do_sample = true;
  generation.top_p = 0.9;
  EXPECT_EQ(default_sampling(generation).temperature, 0.7);
  EXPECT_EQ(default_sampling(generation).top_p, 0.9);
  generation.temperature.reset();
  EXPECT_EQ(default_sampling(generation).temperature, 1.0);
}

// Qwen2.5 has 1.05, or 1.1, and counts on what transformers does with it: it looks at everything.
TEST(DefaultSampling, HasThePenaltyOfTheModel) {
  GenerationConfig generation;
  EXPECT_EQ(default_sampling(generation).repetition_penalty, 1.0);
  generation.repetition_penalty = 1.05;
  EXPECT_EQ(default_sampling(generation).repetition_penalty, 1.05);
  EXPECT_EQ(default_sampling(generation).penalty_window, 0);
}

}  // namespace
}  // namespace tessera
