#include "engine/serving/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr int64_t kPageSize = 16;

class SchedulerTest : public testing::Test {
 protected:
  // A request of `prompt_tokens`, of which `cached_tokens` are computed and hold their pages.
  Request request(int64_t prompt_tokens, int64_t cached_tokens = 0, int64_t max_length = 1000) {
    Sequence& sequence = sequences_.emplace_back(pool_);
    sequence.start(std::vector<TokenId>(static_cast<size_t>(prompt_tokens), 1));
    pool_.grow(sequence.block_table(), cached_tokens);
    sequence.advance(cached_tokens);
    return {.sequence = &sequence, .max_length = max_length};
  }
  // The same with a last token that is to be computed, as it is while an answer grows.
  Request decoding(int64_t num_tokens, int64_t max_length = 1000) {
    return request(num_tokens, num_tokens - 1, max_length);
  }

  Scheduler& scheduler(const StepLimits& limits) {
    return scheduler_.emplace(limits, pool_, [this] { return reclaim_ && reclaim_(); });
  }
  Scheduler& scheduler() { return scheduler({.max_tokens = 100, .max_sequences = 10}); }

  // "1: 0+5 2: 9+1!": of the second sequence made, tokens 0 to 4; of the third the tenth, after
  // which a new one is drawn.
  std::string text(const std::vector<ScheduledSequence>& batch) const {
    std::string text;
    for (const ScheduledSequence& item : batch) {
      size_t index = 0;
      while (&sequences_[index] != item.request->sequence) ++index;
      text += concat(text.empty() ? "" : " ", index, ": ", item.begin, "+", item.num_tokens,
                     item.completes ? "!" : "");
    }
    return text;
  }

  // What a runner and a loop do with a step: everything is computed, and tokens are drawn.
  static void complete(const std::vector<ScheduledSequence>& batch) {
    for (const ScheduledSequence& item : batch) {
      item.request->sequence->advance(item.num_tokens);
      if (item.completes) item.request->sequence->append(1);
    }
  }

  PagePool pool_{/*num_pages=*/20, kPageSize};
  std::deque<Sequence> sequences_;
  std::function<bool()> reclaim_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, IsIdleWithoutRequests) {
  EXPECT_TRUE(scheduler().is_idle());
  EXPECT_TRUE(scheduler_->next_batch().empty());
  scheduler_->add(request(3));
  EXPECT_FALSE(scheduler_->is_idle());
  EXPECT_FALSE(scheduler_->is_running(sequences_[0])) << "it waits";
  scheduler_->next_batch();
  EXPECT_TRUE(scheduler_->is_running(sequences_[0]));
  scheduler_->remove(sequences_[0]);
  EXPECT_TRUE(scheduler_->is_idle());
}

TEST_F(SchedulerTest, DecodesComeBeforePromptsAndOldestFirst) {
  scheduler();
  scheduler_->add(request(30));
  scheduler_->add(decoding(5));
  scheduler_->add(request(20));
  scheduler_->add(decoding(7));
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 4+1! 3: 6+1! 0: 0+30! 2: 0+20!");
}

TEST_F(SchedulerTest, PromptsShareTheTokensThatDecodesLeave) {
  scheduler({.max_tokens = 40, .max_sequences = 10});
  scheduler_->add(request(30));
  scheduler_->add(request(30));
  scheduler_->add(request(30));
  scheduler_->add(decoding(5));
  auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "3: 4+1! 0: 0+30! 1: 0+9");
  complete(batch);
  batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 30+1! 3: 5+1! 1: 9+21! 2: 0+17");
}

// To the kernels it is a decode.
TEST_F(SchedulerTest, ALastChunkOfOneTokenIsAmongTheDecodes) {
  scheduler({.max_tokens = 21, .max_sequences = 10});
  scheduler_->add(request(20));
  scheduler_->add(request(20));
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 0+1 0: 0+20!");
}

TEST_F(SchedulerTest, AdmitsUpToMaxSequencesAndNoMore) {
  scheduler({.max_tokens = 100, .max_sequences = 2});
  for (int i = 0; i < 3; ++i) scheduler_->add(decoding(3));
  EXPECT_EQ(text(scheduler_->next_batch()), "0: 2+1! 1: 2+1!");
  scheduler_->remove(sequences_[0]);
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 2+1! 2: 2+1!");
}

TEST_F(SchedulerTest, TakesPagesForWhatItSchedules) {
  scheduler();
  scheduler_->add(request(33));
  scheduler_->next_batch();
  EXPECT_EQ(std::ssize(sequences_[0].block_table()), 3);
  EXPECT_EQ(pool_.num_free_pages(), 17);
}

TEST_F(SchedulerTest, RunsFewerWhenPagesAreShort) {
  scheduler({.max_tokens = 1000, .max_sequences = 10});
  scheduler_->add(request(18 * kPageSize));
  scheduler_->add(request(3 * kPageSize));
  scheduler_->add(request(2 * kPageSize));
  EXPECT_EQ(text(scheduler_->next_batch()), "0: 0+288! 2: 0+32!") << "a smaller one may pass";
  EXPECT_EQ(pool_.num_free_pages(), 0);
}

TEST_F(SchedulerTest, ReclaimsPagesOneOwnerAtATime) {
  const Request idle[] = {request(kPageSize, kPageSize), request(kPageSize, kPageSize),
                          request(kPageSize, kPageSize)};
  size_t num_reclaimed = 0;
  reclaim_ = [&] {
    if (num_reclaimed == 3) return false;
    idle[num_reclaimed++].sequence->release_cache();
    return true;
  };
  scheduler({.max_tokens = 1000, .max_sequences = 10});
  scheduler_->add(request(19 * kPageSize));
  EXPECT_EQ(text(scheduler_->next_batch()), "3: 0+304!");
  EXPECT_EQ(num_reclaimed, 2u) << "17 pages were free, 19 were needed";
  scheduler_->add(request(2 * kPageSize));
  scheduler_->remove(sequences_[3]);
  EXPECT_EQ(text(scheduler_->next_batch()), "") << "one page can be had, two are needed";
  EXPECT_EQ(num_reclaimed, 3u);
}

class BatchAfterTest : public SchedulerTest {
 protected:
  // The step after the one that next_batch() gives.
  std::string after_next() {
    const auto batch = scheduler_->next_batch();
    return text(scheduler_->batch_after(batch));
  }
};

TEST_F(BatchAfterTest, IsATokenMoreOfEach) {
  scheduler();
  scheduler_->add(decoding(16));
  scheduler_->add(request(20));
  EXPECT_EQ(after_next(), "0: 16+1! 1: 20+1!");
  EXPECT_EQ(std::ssize(sequences_[0].block_table()), 2) << "the page of the token to come";
}

TEST_F(BatchAfterTest, WaitsForAPromptThatIsCut) {
  scheduler({.max_tokens = 10, .max_sequences = 10});
  scheduler_->add(decoding(5));
  scheduler_->add(request(20));
  EXPECT_EQ(after_next(), "");
}

TEST_F(BatchAfterTest, WaitsWhileARunningSequenceIsLeftOut) {
  scheduler({.max_tokens = 1, .max_sequences = 10});
  scheduler_->add(decoding(5));
  scheduler_->add(decoding(5));
  EXPECT_EQ(after_next(), "");
}

TEST_F(BatchAfterTest, WaitsToAdmitWhoCanBeAdmitted) {
  scheduler({.max_tokens = 100, .max_sequences = 2});
  scheduler_->add(decoding(5));
  const auto batch = scheduler_->next_batch();
  scheduler_->add(decoding(5));
  EXPECT_EQ(text(scheduler_->batch_after(batch)), "");
}

TEST_F(BatchAfterTest, DoesNotWaitForWhoCannotBeAdmitted) {
  scheduler({.max_tokens = 100, .max_sequences = 1});
  scheduler_->add(decoding(5));
  const auto batch = scheduler_->next_batch();
  scheduler_->add(decoding(5));
  EXPECT_EQ(text(scheduler_->batch_after(batch)), "0: 5+1!");
}

TEST_F(BatchAfterTest, WaitsWhenCountingEndsOne) {
  scheduler();
  scheduler_->add(decoding(9, /*max_length=*/10));
  EXPECT_EQ(after_next(), "");
}

TEST_F(BatchAfterTest, DoesNotWaitForTheLastTokenButOne) {
  scheduler();
  scheduler_->add(decoding(9, /*max_length=*/11));
  EXPECT_EQ(after_next(), "0: 9+1!");
}

TEST_F(BatchAfterTest, WaitsForTheTokenThatPenaltiesNeed) {
  scheduler();
  Request penalized = decoding(5);
  penalized.has_penalty = true;
  scheduler_->add(penalized);
  EXPECT_EQ(after_next(), "");
}

TEST_F(BatchAfterTest, WaitsWhenOneOfTheStepHasEnded) {
  scheduler();
  scheduler_->add(decoding(5));
  scheduler_->add(decoding(5));
  auto batch = scheduler_->next_batch();
  scheduler_->remove(sequences_[1]);
  batch[1].request.reset();
  EXPECT_EQ(text(scheduler_->batch_after(batch)), "");
}

// It may turn out that their tokens do not come.
TEST_F(BatchAfterTest, ReclaimsNothing) {
  reclaim_ = [] {
    ADD_FAILURE() << "reclaims";
    return false;
  };
  scheduler();
  scheduler_->add(decoding(16));
  scheduler_->add(decoding(16));
  const auto batch = scheduler_->next_batch();
  BlockTable others;
  pool_.grow(others, 17 * kPageSize);
  EXPECT_EQ(text(scheduler_->batch_after(batch)), "") << "one page is free, two are needed";
  EXPECT_EQ(pool_.num_free_pages(), 1);
  pool_.shrink(others, 16 * kPageSize);
  EXPECT_EQ(text(scheduler_->batch_after(batch)), "0: 16+1! 1: 16+1!");
  pool_.shrink(others, 0);
}

}  // namespace
}  // namespace tessera
