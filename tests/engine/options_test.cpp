#include "engine/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

template <typename Options>
std::string problem_of(const Options& options) {
  try {
    validate(options);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SamplingParams, DefaultsAreValid) { EXPECT_EQ(problem_of(SamplingParams{}), ""); }

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

TEST(EngineOptions, EveryFieldIsChecked) {
  const EngineOptions good{.model = "somewhere"};
  EXPECT_EQ(problem_of(good), "");
  EXPECT_NE(problem_of(EngineOptions{}), "");
  const std::function<void(EngineOptions&)> changes[] = {
      [](auto& o) { o.context_size = -1; },
      [](auto& o) { o.max_sequences = 0; },
      [](auto& o) { o.page_size = 0; },
      [](auto& o) { o.page_size = 48; },
      [](auto& o) { o.page_size = 512; },
      [](auto& o) { o.prefill_chunk = -1; },
      [](auto& o) { o.num_threads = -1; },
      [](auto& o) { o.cuda_index = -1; },
      [](auto& o) { o.compute_dtype = DType::kFloat32; },
  };
  for (const auto& change : changes) {
    EngineOptions options = good;
    change(options);
    EXPECT_THAT(problem_of(options), testing::HasSubstr(", got "));
  }
}

TEST(EngineOptions, AContextLongerThanTheModelsIsRefusedWithTheModelsOwn) {
  const ModelFolder folder{.path = "some/model", .config = {.max_position_embeddings = 256}};
  EXPECT_NO_THROW(check_context_size({.context_size = 256}, folder));
  try {
    check_context_size({.context_size = 257}, folder);
    FAIL();
  } catch (const ContextSizeError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("257"));
    EXPECT_EQ(error.allowed(), "an integer in 0..256");
    EXPECT_THAT(error.hint(), testing::HasSubstr("some/model holds at most 256 tokens"));
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

}  // namespace
}  // namespace tessera
