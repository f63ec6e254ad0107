#include "engine/serving/generation_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/engine/serving/generation_loop_fixture.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// With and without running ahead: what a caller sees is the same.
class EitherLoopTest : public GenerationLoopTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override { make_loop(GetParam()); }
};

TEST_P(EitherLoopTest, AnswersSeveralAtOnceAndQueuesTheRest) {
  const Sequence& first = submit("q");
  const Sequence& second = submit("abcu");
  const Sequence& third = submit("v", {.max_tokens = 2});
  EXPECT_TRUE(loop_->is_generating(third));
  finish();
  EXPECT_EQ(result(first).text, "rstuvwxy");
  EXPECT_EQ(result(second).text, "vwxy");
  EXPECT_EQ(result(third).text, "wx");
  EXPECT_EQ(result(third).stop_reason, StopReason::kMaxTokens);
  EXPECT_FALSE(loop_->is_generating(third));
  EXPECT_FALSE(loop_->step()) << "nothing is left to do";
}

TEST_P(EitherLoopTest, NumbersTheTokensOfAnAnswer) {
  submit("abcv");
  finish();
  ASSERT_GE(std::ssize(runner_.answer_indices), 4);
  for (size_t i = 0; i < runner_.answer_indices.size(); ++i) {
    EXPECT_EQ(runner_.answer_indices[i], static_cast<int64_t>(i));
  }
}

// A chunk that is not the last of its prompt draws nothing, wherever in the step it is.
TEST_P(EitherLoopTest, PromptsAreComputedInPieces) {
  make_loop(GetParam(), {.max_tokens = 4, .max_sequences = 2, .context_size = 100});
  const Sequence& first = submit("abu");
  const Sequence& second = submit("abcdefgv");
  finish();
  EXPECT_EQ(runner_.steps.front(), "0+1 0+3!");
  EXPECT_EQ(result(first).text, "vwxy");
  EXPECT_EQ(result(second).text, "wxy");
}

// Beside an answer that asks for more of them, and one that asks for none.
TEST_P(EitherLoopTest, TellsTheLogprobsThatEachAsksFor) {
  make_loop(GetParam(), {.max_tokens = 64, .max_sequences = 3, .context_size = 100});
  const Sequence& none = submit("abcu");
  const Sequence& two = submit("w", {.top_logprobs = 2});
  const Sequence& zero = submit("s", {.top_logprobs = 0});
  finish();
  EXPECT_TRUE(result(none).logprobs.empty());
  EXPECT_EQ(result(two).text, "xy");
  ASSERT_EQ(result(two).logprobs.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    const TokenLogprobs& logprobs = result(two).logprobs[i];
    EXPECT_EQ(logprobs.logprob, -static_cast<float>(result(two).tokens[i]));
    ASSERT_EQ(logprobs.top.size(), 2u);
    EXPECT_EQ(logprobs.top[1].token, 1);
  }
  EXPECT_EQ(result(zero).text, "tuvwxy");
  ASSERT_EQ(result(zero).logprobs.size(), 6u);
  EXPECT_TRUE(result(zero).logprobs[5].top.empty());
}

TEST_P(EitherLoopTest, AThrowingCallbackEndsItsOwnGeneration) {
  Sequence& first = submit("a", {}, {.on_text = [](std::string_view text) {
                             if (text == "d") throw std::runtime_error("enough");
                           }});
  const Sequence& second = submit("q");
  EXPECT_THROW(finish(), std::runtime_error);
  EXPECT_FALSE(loop_->is_generating(first));
  EXPECT_EQ(result(first).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(second).text, "rst") << "which has its token of that step";
  finish();
  EXPECT_EQ(result(second).text, "rstuvwxy");
  loop_->submit(first, tokens_of("av"), {}, {});
  finish();
  EXPECT_EQ(result(first).text, "wxy");
  expect_no_page_lost({&first, &second});
}

TEST_P(EitherLoopTest, WhatEveryOtherCallbackThrowsEndsItsOwnGenerationToo) {
  const auto fail = [] { throw std::runtime_error("enough"); };
  const Sequence& asked = submit("a", {}, {.is_cancelled = [&] {
                                   fail();
                                   return false;
                                 }});
  EXPECT_THROW(loop_->step(), std::runtime_error);
  EXPECT_EQ(result(asked).stop_reason, StopReason::kCancelled);
  const Sequence& told = submit("a", {}, {.on_prefill = [&](int64_t, int64_t) { fail(); }});
  const Sequence& kept = submit("v");
  EXPECT_THROW(loop_->step(), std::runtime_error);
  EXPECT_EQ(result(told).stop_reason, StopReason::kCancelled);
  finish();
  EXPECT_EQ(result(kept).text, "wxy");
}

TEST_P(EitherLoopTest, AFailingStepEndsEveryGeneration) {
  const Sequence& first = submit("a");
  Sequence& second = submit("k");
  loop_->step();
  runner_.while_computing = [] { throw Error("the device is gone"); };
  EXPECT_THROW(finish(), Error);
  for (const Sequence* sequence : {&first, const_cast<const Sequence*>(&second)}) {
    EXPECT_FALSE(loop_->is_generating(*sequence));
    EXPECT_EQ(result(*sequence).stop_reason, StopReason::kCancelled);
    EXPECT_EQ(sequence->num_cached(), 0);
  }
  EXPECT_EQ(pool_.num_free_pages(), kNumPages);
  EXPECT_FALSE(loop_->step());
  runner_.while_computing = {};
  loop_->submit(second, tokens_of("kv"), {}, {});
  finish();
  EXPECT_EQ(result(second).text, "wxy") << "and the loop goes on";
}

TEST_P(EitherLoopTest, CancelsBetweenSteps) {
  const Sequence& running = submit("a");
  const Sequence& kept = submit("q");
  const Sequence& waiting = submit("b");
  loop_->step();
  loop_->cancel(running);
  loop_->cancel(waiting);
  EXPECT_TRUE(loop_->is_generating(running)) << "until the next step";
  loop_->step();
  for (const Sequence* sequence : {&running, &waiting}) {
    EXPECT_FALSE(loop_->is_generating(*sequence));
    EXPECT_EQ(result(*sequence).stop_reason, StopReason::kCancelled);
  }
  loop_->cancel(running);  // which is over already
  finish();
  EXPECT_EQ(result(running).text, "b");
  EXPECT_EQ(result(waiting).text, "");
  EXPECT_EQ(result(kept).text, "rstuvwxy");
}

TEST_P(EitherLoopTest, ACancelledSequenceLeavesTheOthers) {
  std::string shown;
  const Sequence& cancelled = submit("a", {},
                                     {.on_text = [&](std::string_view text) { shown += text; },
                                      .is_cancelled = [&] { return shown.size() >= 3; }});
  const Sequence& kept = submit("q");
  finish();
  EXPECT_EQ(result(cancelled).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(cancelled).text, shown);
  EXPECT_EQ(shown, "bcd");
  EXPECT_EQ(result(kept).text, "rstuvwxy");
  EXPECT_EQ(cancelled.num_cached(), 3) << "the prompt and two tokens of the answer";
  expect_no_page_lost({&cancelled, &kept});
}

TEST_P(EitherLoopTest, AStepThatSomebodyWaitsForIsFinished) {
  bool stop = false;
  runner_.while_computing = [&] { stop = true; };
  const Sequence& cancelled = submit("a", {}, {.is_cancelled = [&] { return stop; }});
  const Sequence& kept = submit("v");
  finish();
  EXPECT_EQ(runner_.num_stopped, 0);
  EXPECT_EQ(result(cancelled).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(kept).text, "wxy");
}

// It is as if the step had never begun.
TEST_P(EitherLoopTest, AStepIsGivenUpWhenAllItsSequencesAreCancelled) {
  bool stop = false;
  runner_.while_computing = [&] { stop = runner_.steps.size() == 2; };
  const Sequence& sequence = submit("a", {}, {.is_cancelled = [&] { return stop; }});
  Sequence& waiting = submit("u", {}, {.is_cancelled = [&] { return stop; }});
  finish();
  EXPECT_EQ(runner_.num_stopped, 1);
  EXPECT_EQ(result(sequence).stop_reason, StopReason::kCancelled);
  EXPECT_EQ(result(sequence).text, "bc");
  EXPECT_EQ(sequence.num_cached(), sequence.num_tokens() - 1);

  runner_.while_computing = {};
  stop = false;
  loop_->submit(waiting, tokens_of("uvw"), {}, {});
  finish();
  EXPECT_EQ(result(waiting).text, "xy");
}

TEST_P(EitherLoopTest, LogitsThatAreNotFiniteEndOneSequenceWithoutItsCache) {
  runner_.non_finite_at = token_of('c');
  const Sequence& broken = submit("a");
  const Sequence& sound = submit("q");
  finish();
  EXPECT_EQ(result(broken).stop_reason, StopReason::kNonFiniteLogits);
  EXPECT_EQ(result(broken).error, "non-finite logits at position 2");
  EXPECT_EQ(result(broken).text, "bc");
  EXPECT_TRUE(broken.block_table().empty());
  EXPECT_EQ(result(sound).text, "rstuvwxy");
}

TEST_P(EitherLoopTest, TheNextTurnComputesOnlyWhatIsNew) {
  Sequence& sequence = submit("abc", {.max_tokens = 3});
  finish();
  runner_.steps.clear();
  loop_->submit(sequence, tokens_of("abcdefuv"), {}, {});
  finish();
  EXPECT_EQ(result(sequence).cached_prompt_tokens, 5) << "the last token was never computed";
  EXPECT_EQ(runner_.steps.front(), "5+3!");
  EXPECT_EQ(result(sequence).text, "wxy");
}

TEST_P(EitherLoopTest, ACallbackMaySubmitAndDestroy) {
  Sequence& other = submit("a");
  Sequence& later = loop_->create_sequence();
  int num_texts = 0;
  const Sequence& first = submit("q", {}, {.on_text = [&](std::string_view) {
                                   if (++num_texts != 3) return;
                                   loop_->destroy(other);
                                   loop_->submit(later, tokens_of("v"), {}, {});
                                 }});
  finish();
  EXPECT_EQ(result(first).text, "rstuvwxy");
  EXPECT_EQ(result(later).text, "wxy");
  expect_no_page_lost({&first, &later});
}

TEST_P(EitherLoopTest, DestroyedSequencesGiveTheirPagesBackInTheMiddleOfAStep) {
  Sequence& sequence = submit("a");
  loop_->step();
  EXPECT_LT(pool_.num_free_pages(), kNumPages);
  loop_->destroy(sequence);
  EXPECT_EQ(pool_.num_free_pages(), kNumPages);
  EXPECT_FALSE(loop_->step());
}

TEST_P(EitherLoopTest, OldCachesMakeRoomAndTheOldestGoesFirst) {
  const std::string long_prompt(3 * kPageSize, 'a');
  const Sequence& oldest = submit(long_prompt, {.max_tokens = 1});
  finish();
  const Sequence& newer = submit(long_prompt, {.max_tokens = 1});
  finish();
  const Sequence& third = submit(long_prompt, {.max_tokens = 1});
  finish();
  EXPECT_TRUE(oldest.block_table().empty());
  EXPECT_EQ(oldest.num_cached(), 0);
  EXPECT_EQ(std::ssize(newer.block_table()), 3);
  EXPECT_EQ(std::ssize(third.block_table()), 3);
}

TEST_P(EitherLoopTest, ARunningSequenceKeepsItsCacheWhenPagesAreShort) {
  make_loop(GetParam(), {.max_tokens = 200, .max_sequences = 2, .context_size = 200});
  const Sequence& first = submit(std::string(4 * kPageSize - 8, 'u'));
  const Sequence& second = submit(std::string(5 * kPageSize, 'v'), {.max_tokens = 1});
  finish();
  EXPECT_EQ(result(first).text, "vwxy");
  EXPECT_EQ(result(first).computed_prompt_tokens, 4 * kPageSize - 8);
  EXPECT_EQ(result(second).text, "w");
  EXPECT_EQ(runner_.steps.front(), "0+56!") << "one after the other";
}

// A sequence that waits may lose its cache to one that runs; then it has found nothing in it.
TEST_P(EitherLoopTest, AWaitingSequenceMayLoseItsCache) {
  make_loop(GetParam(), {.max_tokens = 200, .max_sequences = 1, .context_size = 200});
  const std::string prompt(3 * kPageSize, 'a');
  Sequence& waiting = submit(prompt, {.max_tokens = 1});
  finish();
  submit(std::string(6 * kPageSize, 'b'), {.max_tokens = 1});
  loop_->submit(waiting, tokens_of(prompt + "b"), {.max_tokens = 1}, {});
  EXPECT_EQ(result(waiting).cached_prompt_tokens, 3 * kPageSize);
  finish();
  EXPECT_EQ(result(waiting).cached_prompt_tokens, 0);
  EXPECT_EQ(result(waiting).computed_prompt_tokens, 3 * kPageSize + 1);
  EXPECT_EQ(result(waiting).text, "c");
}

TEST_P(EitherLoopTest, ARequestThatCanNeverFitFailsAlone) {
  make_loop(GetParam(), {.max_tokens = 1000, .max_sequences = 2, .context_size = 1000});
  const Sequence& fitting = submit(std::string(kNumPages * kPageSize - 2, 'a'));
  try {
    submit(std::string(kNumPages * kPageSize + 1, 'a'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("129 tokens does not fit the KV cache of 8 pages of 16"));
  }
  finish();
  EXPECT_EQ(result(fitting).text, "bc") << "all pages are full then";
  EXPECT_EQ(result(fitting).stop_reason, StopReason::kContextFull);
}

// Pages run out while both grow. The younger gives way, and says nothing twice.
TEST_P(EitherLoopTest, TheYoungerGivesWayAndGoesOnLater) {
  make_loop(GetParam(), {.max_tokens = 1000, .max_sequences = 2, .context_size = 128});
  std::string shown;
  const Sequence& older = submit(std::string(3 * kPageSize, 'a'), {.max_tokens = 20});
  const Sequence& younger = submit(std::string(3 * kPageSize, 'A'), {.max_tokens = 40},
                                   {.on_text = [&](std::string_view text) { shown += text; }});
  BlockTable others;
  pool_.grow(others, kPageSize);
  finish();
  EXPECT_EQ(loop_->statistics().num_preemptions, 1);
  EXPECT_EQ(result(older).text, "bcdefghijklmnopqrstu");
  EXPECT_EQ(result(younger).text, "BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghi");
  EXPECT_EQ(shown, result(younger).text);
  EXPECT_TRUE(result(younger).is_prompt_computed());
  for (size_t i = 0; i < runner_.answer_indices.size(); ++i) {
    EXPECT_LT(runner_.answer_indices[i], 41) << "its draws are numbered as they would be alone";
  }
  pool_.shrink(others, 0);
  expect_no_page_lost({&older, &younger});
}

TEST_P(EitherLoopTest, CountsWhatItDoes) {
  const Sequence& first = submit("abcdefv");
  submit("q");
  submit("r");
  loop_->step();
  const ServingStatistics now = loop_->statistics();
  EXPECT_EQ(now.num_running, 2);
  EXPECT_EQ(now.num_waiting, 1);
  EXPECT_EQ(now.num_pages, kNumPages);
  EXPECT_EQ(now.held_pages, 2);
  EXPECT_EQ(now.free_pages, kNumPages - 2);
  EXPECT_EQ(now.num_tokens, 2);
  finish();
  const ServingStatistics then = loop_->statistics();
  EXPECT_EQ(then.num_running + then.num_waiting, 0);
  EXPECT_EQ(then.prompt_tokens_computed, 9);
  EXPECT_EQ(then.num_tokens, std::ssize(result(first).tokens) + 8 + 7);
  EXPECT_EQ(then.num_steps, std::ssize(runner_.steps));
  EXPECT_EQ(then.num_preemptions, 0);
}

// From its first token on: what comes before that is another wait.
TEST_P(EitherLoopTest, KnowsTheLongestWaitForANextToken) {
  using namespace std::chrono_literals;
  make_loop(GetParam());
  runner_.while_computing = [] { std::this_thread::sleep_for(2ms); };
  const Sequence& first = submit("a", {.max_tokens = 1});
  finish();
  EXPECT_EQ(result(first).longest_wait_seconds, 0.0);
  EXPECT_EQ(loop_->statistics().longest_token_wait_seconds, 0.0);
  runner_.while_computing = [this] {
    if (runner_.steps.size() == 4) std::this_thread::sleep_for(40ms);
  };
  const Sequence& second = submit("b", {.max_tokens = 8});
  finish();
  EXPECT_GE(result(second).longest_wait_seconds, 0.04);
  EXPECT_LE(result(second).longest_wait_seconds, result(second).decode_seconds);
  EXPECT_EQ(loop_->statistics().longest_token_wait_seconds, result(second).longest_wait_seconds);
}

INSTANTIATE_TEST_SUITE_P(, EitherLoopTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "ahead" : "plain"; });

TEST(GenerationLoop, RunsOnePlainStepAtATime) {
  const auto tokenizer = load_byte_tokenizer();
  PagePool pool(kNumPages, kPageSize);
  FakeRunner runner(kPageSize);
  GenerationLoop loop(
      runner, pool, *tokenizer,
      {.limits = {.max_tokens = 64, .max_sequences = 2, .context_size = 100}, .stop_tokens = {}});
  Sequence& sequence = loop.create_sequence();
  loop.submit(sequence, tokens_of("abc"), {}, {});
  EXPECT_EQ(loop.generation(loop.create_sequence()), nullptr);
  loop.step();
  EXPECT_THAT(runner.steps, ElementsAre("0+3!"));
}

}  // namespace
}  // namespace tessera
