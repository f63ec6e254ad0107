#include "engine/serving/scheduler.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

constexpr int64_t kSchedulerPageSize = 16;

class SchedulerTest : public testing::Test {
 protected:
  // A request of `prompt_tokens`, of which `cached_tokens` are computed and hold their pages.
  Request request(int64_t prompt_tokens, int64_t cached_tokens = 0, int64_t max_length = 1000) {
    Sequence& sequence = sequences_.emplace_back(pool_);
    sequence.start(std::vector<TokenId>(static_cast<size_t>(prompt_tokens), 1));
    pool_.grow(sequence.block_table(), cached_tokens);
    sequence.launch(cached_tokens, 0);
    sequence.advance(cached_tokens);
    return {.sequence = &sequence, .max_length = max_length};
  }
  // The same with a last token that is to be computed, as it is while an answer grows.
  Request decoding(int64_t num_tokens, int64_t max_length = 1000) {
    return request(num_tokens, num_tokens - 1, max_length);
  }

  Scheduler& scheduler(const StepLimits& limits) {
    return scheduler_.emplace(limits, pool_, cache_, [this] { return reclaim_ && reclaim_(); });
  }
  Scheduler& scheduler() { return scheduler({.max_tokens = 100, .max_sequences = 10}); }

  // "1: 0+5 2: 9+1!": of the second sequence made, tokens 0 to 4; of the third the tenth, after
  // which a new one is drawn. "2: 9+1@3!" if that tenth is the fourth that the step before draws.
  std::string text(const std::vector<ScheduledSequence>& batch) const {
    std::string text;
    for (const ScheduledSequence& item : batch) {
      size_t index = 0;
      while (&sequences_[index] != item.request->sequence) ++index;
      text +=
          concat(text.empty() ? "" : " ", index, ": ", item.begin, "+", item.num_tokens,
                 item.draw_index ? concat("@", *item.draw_index) : "", item.completes ? "!" : "");
    }
    return text;
  }

  // What a runner and a loop do with a step: everything is computed, and tokens are drawn.
  void complete(const std::vector<ScheduledSequence>& batch) {
    scheduler_->launched(batch);
    collect(batch);
  }
  static void collect(const std::vector<ScheduledSequence>& batch) {
    for (const ScheduledSequence& item : batch) {
      item.request->sequence->advance(item.end());
      if (item.completes) item.request->sequence->append(1);
    }
  }

  PagePool pool_{/*num_pages=*/20, kSchedulerPageSize};
  PrefixCache cache_{pool_, false};
  std::deque<Sequence> sequences_;
  std::function<bool()> reclaim_;
  std::optional<Scheduler> scheduler_;
};

TEST_F(SchedulerTest, IsIdleWithoutRequests) {
  EXPECT_TRUE(scheduler().is_idle());
  EXPECT_TRUE(scheduler_->next_batch().empty());
  scheduler_->add(request(3));
  EXPECT_FALSE(scheduler_->is_idle());
  EXPECT_FALSE(sequences_[0].is_running()) << "it waits";
  scheduler_->next_batch();
  EXPECT_TRUE(sequences_[0].is_running());
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
  scheduler_->add(decoding(4));
  complete(scheduler_->next_batch());
  for (int i = 0; i < 3; ++i) scheduler_->add(request(30));
  auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 4+1! 1: 0+30! 2: 0+9");
  complete(batch);
  batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 5+1! 1: 30+1! 2: 9+21! 3: 0+17");
}

// To the kernels it is a decode.
TEST_F(SchedulerTest, ALastChunkOfOneTokenIsAmongTheDecodes) {
  scheduler({.max_tokens = 21, .max_sequences = 10});
  scheduler_->add(request(20));
  scheduler_->add(request(20));
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 0+1 0: 0+20!");
}

// The third and the fifth begin with pages of the first, the fourth with one of the second.
TEST_F(SchedulerTest, DecodesWithTheSamePagesStandTogether) {
  const std::vector<Request> requests = {decoding(40), decoding(40), request(40),
                                         request(40),  request(40),  decoding(8)};
  const auto share = [&](size_t index, size_t of, size_t num_pages) {
    const BlockTable pages = requests[of].sequence->block_table();
    for (const int32_t page : pages) pool_.keep(page);
    for (size_t i = 0; i < num_pages; ++i) {
      pool_.share(requests[index].sequence->block_table(), pages[i]);
    }
    pool_.grow(requests[index].sequence->block_table(), 39);
    requests[index].sequence->launch(39, 0);
    requests[index].sequence->advance(39);
  };
  share(2, 0, 2);
  share(3, 1, 1);
  share(4, 0, 1);
  Scheduler& scheduler = this->scheduler();
  for (const Request& request : requests) scheduler.add(request);
  EXPECT_EQ(text(scheduler.next_batch()), "0: 39+1! 2: 39+1! 4: 39+1! 1: 39+1! 3: 39+1! 5: 7+1!");
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

TEST_F(SchedulerTest, PromptsBesideDecodesAreBounded) {
  scheduler({.max_tokens = 100, .max_sequences = 10, .max_tokens_beside_decodes = 33});
  scheduler_->add(request(5));
  const auto alone = scheduler_->next_batch();
  EXPECT_EQ(text(alone), "0: 0+5!") << "nobody decodes";
  complete(alone);
  scheduler_->add(request(60));
  auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 5+1! 1: 0+32");
  complete(batch);
  EXPECT_EQ(text(scheduler_->next_batch()), "0: 6+1! 1: 32+28!");
}

TEST_F(SchedulerTest, AQuarterOfAStepIsForPromptsHoweverManyDecode) {
  scheduler({.max_tokens = 100, .max_sequences = 10, .max_tokens_beside_decodes = 8});
  for (int i = 0; i < 7; ++i) scheduler_->add(request(2));
  complete(scheduler_->next_batch());
  scheduler_->add(request(60));
  EXPECT_EQ(text(scheduler_->next_batch()),
            "0: 2+1! 1: 2+1! 2: 2+1! 3: 2+1! 4: 2+1! 5: 2+1! 6: 2+1! 7: 0+2");
}

TEST_F(SchedulerTest, AdmitsWhomThereArePagesFor) {
  scheduler({.max_tokens = 1000, .max_sequences = 10, .context_size = 320});
  scheduler_->add(request(16 * kSchedulerPageSize));
  scheduler_->add(request(4 * kSchedulerPageSize));
  scheduler_->add(request(2 * kSchedulerPageSize));
  const auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 0+256!") << "one page stays free, and a smaller one does not pass";
  EXPECT_EQ(scheduler_->num_waiting(), 2);
  complete(batch);
  scheduler_->remove(sequences_[0]);
  sequences_[0].release_cache();
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 0+64! 2: 0+32!");
}

// Alone it needs no page to spare.
TEST_F(SchedulerTest, TheOldestMayHaveAllPages) {
  scheduler({.max_tokens = 1000, .max_sequences = 10, .context_size = 320});
  scheduler_->add(request(20 * kSchedulerPageSize));
  EXPECT_EQ(text(scheduler_->next_batch()), "0: 0+320!");
  EXPECT_EQ(pool_.num_free_pages(), 0);
}

TEST_F(SchedulerTest, TheYoungestGivesWayAndIsTheNextToComeBack) {
  scheduler({.max_tokens = 1000, .max_sequences = 10, .context_size = 320});
  for (int i = 0; i < 3; ++i) scheduler_->add(decoding(6 * kSchedulerPageSize));
  complete(scheduler_->next_batch());  // 18 pages are full, 2 are free
  scheduler_->add(request(3));
  auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 96+1! 1: 96+1!") << "and nobody joins who would need pages next";
  EXPECT_EQ(scheduler_->num_preemptions(), 1);
  EXPECT_FALSE(sequences_[2].is_running());
  EXPECT_TRUE(sequences_[2].block_table().empty());
  complete(batch);
  batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 97+1! 1: 97+1!") << "7 pages and one to spare are not there";
  complete(batch);
  scheduler_->remove(sequences_[0]);
  sequences_[0].release_cache();
  batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "1: 98+1! 2: 0+97! 3: 0+3!") << "before who came later";
  EXPECT_EQ(batch[1].request->sequence->num_tokens(), 97) << "with the token that it had drawn";
}

TEST_F(SchedulerTest, TheOldestGetsEveryPage) {
  scheduler({.max_tokens = 1000, .max_sequences = 10, .context_size = 320});
  for (int i = 0; i < 4; ++i) scheduler_->add(decoding(4 * kSchedulerPageSize));
  for (int64_t length = 64; length < 320; ++length) {
    const auto batch = scheduler_->next_batch();
    ASSERT_FALSE(batch.empty());
    EXPECT_EQ(batch[0].request->sequence, &sequences_[0]);
    EXPECT_EQ(batch[0].end(), length);
    complete(batch);
  }
  EXPECT_EQ(std::ssize(sequences_[0].block_table()), 20);
}

TEST_F(SchedulerTest, WhosePenaltiesListTooMuchTakeTurns) {
  scheduler({.max_tokens = 1000, .max_sequences = 10, .max_penalized_tokens = 70});
  for (Request penalized : {decoding(60), decoding(60), request(60)}) {
    penalized.penalty_window = 64;
    if (penalized.sequence == &sequences_[1]) penalized.penalty_window = 8;
    if (penalized.sequence == &sequences_[2]) penalized.penalty_window = 0;
    scheduler_->add(penalized);
  }
  scheduler_->add(decoding(60));
  const auto batch = scheduler_->next_batch();
  EXPECT_EQ(text(batch), "0: 59+1! 1: 59+1! 3: 59+1! 2: 0+59") << "all but the draw is done";
  complete(batch);
  scheduler_->remove(sequences_[0]);
  EXPECT_EQ(text(scheduler_->next_batch()), "1: 60+1! 2: 59+1! 3: 60+1!");
}

TEST_F(SchedulerTest, ReclaimsPagesOneOwnerAtATime) {
  const Request idle[] = {request(kSchedulerPageSize, kSchedulerPageSize),
                          request(kSchedulerPageSize, kSchedulerPageSize),
                          request(kSchedulerPageSize, kSchedulerPageSize)};
  size_t num_reclaimed = 0;
  reclaim_ = [&] {
    if (num_reclaimed == 3) return false;
    idle[num_reclaimed++].sequence->release_cache();
    return true;
  };
  scheduler({.max_tokens = 1000, .max_sequences = 10});
  scheduler_->add(request(19 * kSchedulerPageSize));
  EXPECT_EQ(text(scheduler_->next_batch()), "3: 0+304!");
  EXPECT_EQ(num_reclaimed, 2u) << "17 pages were free, 19 were needed";
  scheduler_->add(request(2 * kSchedulerPageSize));
  scheduler_->remove(sequences_[3]);
  EXPECT_EQ(text(scheduler_->next_batch()), "") << "one page can be had, two are needed";
  EXPECT_EQ(num_reclaimed, 3u);
}

// The step after one whose tokens are not known.
class BatchAheadTest : public SchedulerTest {
 protected:
  std::string ahead_of_next() {
    const auto batch = scheduler_->next_batch();
    scheduler_->launched(batch);
    return text(scheduler_->batch_ahead());
  }
};

TEST_F(BatchAheadTest, IsATokenMoreOfEach) {
  scheduler();
  scheduler_->add(decoding(16));
  scheduler_->add(request(20));
  EXPECT_EQ(ahead_of_next(), "0: 16+1@0! 1: 20+1@1!");
  EXPECT_EQ(std::ssize(sequences_[0].block_table()), 2) << "the page of the token to come";
}

TEST_F(BatchAheadTest, APromptThatIsCutGoesOn) {
  scheduler({.max_tokens = 10, .max_sequences = 10});
  scheduler_->add(decoding(5));
  scheduler_->add(request(20));
  EXPECT_EQ(ahead_of_next(), "0: 5+1@0! 1: 9+9");
}

TEST_F(BatchAheadTest, WhoWaitsJoins) {
  scheduler({.max_tokens = 100, .max_sequences = 2});
  scheduler_->add(decoding(5));
  const auto batch = scheduler_->next_batch();
  scheduler_->launched(batch);
  scheduler_->add(request(7));
  scheduler_->add(request(8));
  EXPECT_EQ(text(scheduler_->batch_ahead()), "0: 5+1@0! 1: 0+7!");
}

TEST_F(BatchAheadTest, WhoEndsByCountIsLeftOutAndItsPlaceIsTaken) {
  scheduler({.max_tokens = 100, .max_sequences = 2});
  scheduler_->add(decoding(9, /*max_length=*/10));
  scheduler_->add(decoding(9, /*max_length=*/11));
  const auto batch = scheduler_->next_batch();
  scheduler_->launched(batch);
  scheduler_->add(request(7));
  const auto ahead = scheduler_->batch_ahead();
  EXPECT_EQ(text(ahead), "1: 9+1@1! 2: 0+7!");
  // The one that ended is gone when the next is planned, and places among the drawn have changed.
  collect(batch);
  scheduler_->remove(sequences_[0]);
  scheduler_->launched(ahead);
  EXPECT_EQ(text(scheduler_->batch_ahead()), "2: 7+1@1!");
}

TEST_F(BatchAheadTest, WaitsForTheTokenThatPenaltiesNeed) {
  scheduler();
  Request penalized = decoding(5);
  penalized.penalty_window = 64;
  scheduler_->add(penalized);
  scheduler_->add(decoding(5));
  EXPECT_EQ(ahead_of_next(), "");
}

TEST_F(BatchAheadTest, APromptNeedsNoTokenForItsPenalties) {
  scheduler({.max_tokens = 10, .max_sequences = 10});
  Request penalized = request(25);
  penalized.penalty_window = 64;
  scheduler_->add(penalized);
  EXPECT_EQ(ahead_of_next(), "0: 10+10");
}

TEST_F(BatchAheadTest, WhoHasEndedIsNotInIt) {
  scheduler();
  scheduler_->add(decoding(5));
  scheduler_->add(decoding(5));
  scheduler_->launched(scheduler_->next_batch());
  scheduler_->remove(sequences_[0]);
  EXPECT_EQ(text(scheduler_->batch_ahead()), "1: 5+1@1!");
}

// It may turn out that their tokens do not come.
TEST_F(BatchAheadTest, NobodyGivesPagesForThem) {
  reclaim_ = [] {
    ADD_FAILURE() << "reclaims";
    return false;
  };
  scheduler();
  scheduler_->add(decoding(16));
  scheduler_->add(decoding(16));
  scheduler_->launched(scheduler_->next_batch());
  BlockTable others;
  pool_.grow(others, 17 * kSchedulerPageSize);
  EXPECT_EQ(text(scheduler_->batch_ahead()), "") << "one page is free, two are needed";
  EXPECT_EQ(pool_.num_free_pages(), 1);
  EXPECT_EQ(scheduler_->num_preemptions(), 0);
  pool_.shrink(others, 16 * kSchedulerPageSize);
  EXPECT_EQ(text(scheduler_->batch_ahead()), "0: 16+1@0! 1: 16+1@1!");
  pool_.shrink(others, 0);
}

}  // namespace
}  // namespace tessera
