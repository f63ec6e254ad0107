// What cancelling within a step leaves behind, on a model of random weights whose tokens depend on
// all that its cache holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/engine.h"
#include "kernels/cuda_status.h"
#include "tests/engine/reciting_model.h"

namespace tessera {
namespace {

// Says yes from the n-th time on that it is asked while `counts()`. Takes so long over it that
// every loop of a step asks.
class Cancelling {
 public:
  explicit Cancelling(
      int yes_from, std::function<bool()> counts = [] { return true; })
      : yes_from_(yes_from), counts_(std::move(counts)) {}

  StopQuestion question() {
    return [this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(11));
      if (counts_()) ++num_asked_;
      return num_asked_ >= yes_from_;
    };
  }
  int num_asked() const { return num_asked_; }

 private:
  int yes_from_;
  std::function<bool()> counts_;
  int num_asked_ = 0;
};

// Enough to be well inside a step: it is asked once before.
constexpr int kWithinAStep = 8;

class EngineCancel : public testing::TestWithParam<RunAhead> {
 protected:
  EngineOptions options() const {
    EngineOptions options = model_.options();
    options.run_ahead = GetParam();
    options.max_sequences = 2;
    options.prefill_chunk = 16;
    return options;
  }

  // What an engine answers that never cancelled anything.
  std::vector<TokenId> undisturbed(std::span<const TokenId> prompt) const {
    const auto engine = Engine::load(options());
    const auto sequence = engine->create_sequence();
    return engine->generate(*sequence, prompt, kParams).tokens;
  }

  static constexpr int64_t kMaxTokens = 12;
  const SamplingParams kParams = {.max_tokens = kMaxTokens, .ignore_eos = true};
  const std::vector<TokenId> prompt_ = byte_tokens("What a cancelled prompt has left behind");
  const std::vector<TokenId> other_ = byte_tokens("Another prompt");

  ModelFixture model_;
  std::unique_ptr<Engine> engine_ = Engine::load(options());
};

TEST_P(EngineCancel, GivesUpAStepOfThePrompt) {
  int64_t done = 0;
  Cancelling cancelling(kWithinAStep, [&] { return done >= 16; });
  const auto sequence = engine_->create_sequence();
  const auto cancelled =
      engine_->generate(*sequence, prompt_, kParams,
                        {.on_prefill = [&](int64_t tokens, int64_t) { done = tokens; },
                         .is_cancelled = cancelling.question()});
  EXPECT_EQ(cancelled.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(cancelling.num_asked(), kWithinAStep) << "asked again after a yes";
  // Ahead, the second step is over before the first is reported, and the third is given up.
  const int64_t computed = GetParam() == RunAhead::kAlways ? 32 : 16;
  EXPECT_EQ(done, computed) << "the next step was not given up";
  EXPECT_EQ(cancelled.computed_prompt_tokens, computed);
  EXPECT_FALSE(cancelled.is_prompt_computed());
  EXPECT_GT(cancelled.prefill_tokens_per_second(), 0.0);

  const auto again = engine_->generate(*sequence, prompt_, kParams);
  EXPECT_EQ(again.cached_prompt_tokens, computed);
  EXPECT_EQ(again.computed_prompt_tokens, std::ssize(prompt_) - computed);
  EXPECT_TRUE(again.is_prompt_computed());
  EXPECT_EQ(again.tokens, undisturbed(prompt_));
}

TEST_P(EngineCancel, GivesUpAStepOfTheAnswer) {
  int num_texts = 0;
  Cancelling cancelling(kWithinAStep, [&] { return num_texts >= 3; });
  const auto sequence = engine_->create_sequence();
  const auto cancelled = engine_->generate(
      *sequence, other_, kParams,
      {.on_text = [&](std::string_view) { ++num_texts; }, .is_cancelled = cancelling.question()});
  EXPECT_EQ(cancelled.stop_reason, StopReason::kCancelled);
  EXPECT_LT(std::ssize(cancelled.tokens), kMaxTokens);
  const std::vector<TokenId> expected = undisturbed(other_);
  ASSERT_TRUE(
      std::ranges::equal(cancelled.tokens, std::span(expected).first(cancelled.tokens.size())));

  // The rest of the answer, from the cache that the cancelled generation left.
  std::vector<TokenId> longer = other_;
  std::ranges::copy(cancelled.tokens, std::back_inserter(longer));
  SamplingParams rest = kParams;
  rest.max_tokens = kMaxTokens - std::ssize(cancelled.tokens);
  const auto result = engine_->generate(*sequence, longer, rest);
  EXPECT_EQ(result.cached_prompt_tokens, std::ssize(longer) - 1);
  EXPECT_TRUE(std::ranges::equal(result.tokens, std::span(expected).last(result.tokens.size())));
}

TEST_P(EngineCancel, AStepThatSomebodyWaitsForIsFinished) {
  const auto cancelled = engine_->create_sequence();
  const auto kept = engine_->create_sequence();
  Cancelling cancelling(kWithinAStep);
  std::vector<int64_t> progress;
  engine_->submit(*cancelled, other_, kParams, {.is_cancelled = cancelling.question()});
  engine_->submit(*kept, prompt_, kParams,
                  {.on_prefill = [&](int64_t done, int64_t) { progress.push_back(done); }});
  while (engine_->step()) {
  }
  EXPECT_EQ(engine_->result(*cancelled).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(engine_->result(*kept).tokens, undisturbed(prompt_));
  EXPECT_TRUE(std::ranges::is_sorted(progress, std::less_equal{})) << "a step was repeated";
}

TEST_P(EngineCancel, TheNextInTheQueueIsComputedAsIfNothingHadBeen) {
  const auto first = engine_->create_sequence();
  const auto second = engine_->create_sequence();
  const auto waiting = engine_->create_sequence();
  Cancelling cancelling(kWithinAStep);
  engine_->submit(*first, prompt_, kParams, {.is_cancelled = cancelling.question()});
  engine_->submit(*second, other_, kParams, {.is_cancelled = cancelling.question()});
  engine_->submit(*waiting, prompt_, kParams);
  while (engine_->step()) {
  }
  EXPECT_EQ(engine_->result(*first).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(engine_->result(*second).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(engine_->result(*waiting).tokens, undisturbed(prompt_));
  EXPECT_EQ(engine_->generate(*first, prompt_, kParams).tokens, undisturbed(prompt_));
}

TEST_P(EngineCancel, LogitsCanBeStopped) {
  const std::vector<float> expected = engine_->prompt_logits(prompt_);
  Cancelling cancelling(kWithinAStep);
  EXPECT_THROW(engine_->prompt_logits(prompt_, cancelling.question()), Stopped);
  EXPECT_EQ(engine_->prompt_logits(prompt_), expected) << "and nothing is asked any more";
  EXPECT_EQ(cancelling.num_asked(), kWithinAStep);
}

// Attention over so many tokens is more than 2e12 operations in each layer, so that a GPU is asked
// behind each of them (kernels/cuda/device/stop_points.h).
TEST(EngineCancelOnAGpu, GivesUpALongStepBetweenItsLayers) {
  if (cuda_status().num_devices == 0) GTEST_SKIP() << cuda_status().problem;
  constexpr int64_t kLongStep = 65536;
  const ModelFixture model;
  model.edit("config.json", "\"max_position_embeddings\": 256",
             "\"max_position_embeddings\": 131072");
  EngineOptions options = model.options();
  options.device = DeviceChoice::kCuda;
  options.prefill_chunk = kLongStep;
  options.prefix_cache = false;
  const auto engine = Engine::load(options);
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < kLongStep; ++i) {
    prompt.push_back(byte_token(static_cast<char>(i * i % 251)));
  }
  const SamplingParams params = {.max_tokens = 4, .ignore_eos = true};
  const auto undisturbed = engine->create_sequence();
  const auto sequence = engine->create_sequence();
  const std::vector<TokenId> expected = engine->generate(*undisturbed, prompt, params).tokens;

  // Asked before the step and behind its first layer.
  int num_asked = 0;
  const auto cancelled = engine->generate(*sequence, prompt, params,
                                          {.is_cancelled = [&] { return ++num_asked >= 2; }});
  EXPECT_EQ(cancelled.stop_reason, StopReason::kCancelled);
  EXPECT_EQ(cancelled.computed_prompt_tokens, 0) << "the step was not given up";
  EXPECT_EQ(engine->generate(*sequence, prompt, params).tokens, expected);
}

TEST(EngineLoad, ProgressCanEndEveryPhase) {
  const ModelFixture model;
  int num_calls = 0;
  Engine::load(model.options(), [&](uint64_t, uint64_t) { ++num_calls; });
  EXPECT_GE(num_calls, 4);
  for (int end_at = 1; end_at <= num_calls; ++end_at) {
    int calls = 0;
    EXPECT_THROW(Engine::load(model.options(),
                              [&](uint64_t, uint64_t) {
                                if (++calls == end_at) throw Stopped{};
                              }),
                 Stopped);
    EXPECT_EQ(calls, end_at);
  }
}

INSTANTIATE_TEST_SUITE_P(, EngineCancel, testing::Values(RunAhead::kNever, RunAhead::kAlways),
                         [](const auto& param) {
                           return param.param == RunAhead::kAlways ? "ahead" : "plain";
                         });

}  // namespace
}  // namespace tessera
