#include "engine/serving/launched_step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/serving/generation.h"
#include "tests/engine/serving/byte_tokenizer.h"

namespace tessera {
namespace {

class LaunchedStepTest : public testing::Test {
 protected:
  // A prompt of 6 tokens with 2 of its answer.
  LaunchedStepTest() {
    sequence_.start(tokens_of("promptly"));
    pool_.grow(sequence_.block_table(), 12);
  }
  ScheduledSequence item(int64_t begin, int64_t num_tokens) {
    return {.request = Request{.sequence = &sequence_, .generation = &generation_},
            .begin = begin,
            .num_tokens = num_tokens};
  }
  static TokenChunk chunk_of(const ScheduledSequence& item) { return chunks_of({&item, 1}).at(0); }

  std::unique_ptr<Tokenizer> tokenizer_ = load_byte_tokenizer();
  PagePool pool_{/*num_pages=*/8, /*page_size=*/4};
  Sequence sequence_{pool_};
  Sequence other_{pool_};
  EndRule end_rule_ = {.stop_tokens = {token_of('$')}, .context_size = 20};
  Generation generation_{*tokenizer_, end_rule_, {.num_tokens = 6}, {.min_tokens = 2}, {}};
};

TEST_F(LaunchedStepTest, IsWantedUntilAllItsSequencesAreForgotten) {
  LaunchedStep step = {.batch = {item(0, 2), item(2, 3)}, .tokens = {}};
  step.batch[1].request->sequence = &other_;
  step.forget(sequence_);
  EXPECT_FALSE(step.batch[0].request);
  EXPECT_TRUE(step.batch[1].request);
  EXPECT_TRUE(step.is_wanted());
  step.forget(sequence_);
  EXPECT_TRUE(step.is_wanted());
  step.forget(other_);
  EXPECT_FALSE(step.is_wanted());
}

TEST_F(LaunchedStepTest, AChunkIsPartOfItsSequence) {
  const TokenChunk chunk = chunk_of(item(2, 3));
  EXPECT_TRUE(std::ranges::equal(chunk.tokens, sequence_.tokens()));
  EXPECT_TRUE(std::ranges::equal(chunk.block_table, sequence_.block_table()));
  EXPECT_EQ(chunk.begin, 2);
  EXPECT_EQ(chunk.num_tokens, 3);
  EXPECT_EQ(chunk.draw_index, std::nullopt);
  EXPECT_EQ(chunk.sampling, nullptr) << "nothing is drawn behind it";
}

TEST_F(LaunchedStepTest, WhatCompletesASequenceIsDrawnBehindAsItsGenerationAsks) {
  ScheduledSequence last = item(7, 1);
  last.completes = true;
  last.draw_index = 4;
  const TokenChunk chunk = chunk_of(last);
  EXPECT_EQ(chunk.draw_index, 4);
  EXPECT_EQ(chunk.sampling, &generation_.params());
}

// The prompt has 6 of the 8 tokens; two of the answer are to be there before it may end.
TEST_F(LaunchedStepTest, AnswersAreCountedFromTheEndOfThePrompt) {
  EXPECT_EQ(chunk_of(item(0, 6)).answer_index, 0);
  EXPECT_EQ(chunk_of(item(6, 1)).answer_index, 1);
  EXPECT_TRUE(std::ranges::equal(chunk_of(item(6, 1)).barred, end_rule_.stop_tokens));
  EXPECT_EQ(chunk_of(item(7, 1)).answer_index, 2);
  EXPECT_TRUE(chunk_of(item(7, 1)).barred.empty());
}

TEST_F(LaunchedStepTest, DraftsComeBehindTheTokenThatIsDrawnFirst) {
  ScheduledSequence drafted = item(7, 3);
  drafted.completes = true;
  drafted.drafts = tokens_of("!?");
  const TokenChunk chunk = chunk_of(drafted);
  EXPECT_TRUE(std::ranges::equal(chunk.drafts, drafted.drafts));
  EXPECT_EQ(chunk.num_tokens, 3);
  EXPECT_EQ(chunk.answer_index, 2) << "as without them";
}

TEST_F(LaunchedStepTest, ChunksStandInTheOrderOfTheBatch) {
  const std::vector<ScheduledSequence> batch = {item(7, 1), item(0, 4), item(4, 2)};
  std::vector<int64_t> begins;
  for (const TokenChunk& chunk : chunks_of(batch)) begins.push_back(chunk.begin);
  EXPECT_EQ(begins, (std::vector<int64_t>{7, 0, 4}));
}

}  // namespace
}  // namespace tessera
