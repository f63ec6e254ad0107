#include "engine/model/sampling_lists.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/philox.h"
#include "kernels/sampling_params.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TokenChunk chunk_of(const std::vector<TokenId>& tokens, const SamplingParams* params,
                    int64_t answer_index = 0) {
  return {.tokens = tokens,
          .num_tokens = static_cast<int64_t>(tokens.size()),
          .sampling = params,
          .answer_index = answer_index};
}

uint64_t bits_of(const SamplingLists& lists, size_t token) {
  const auto low = static_cast<uint32_t>(lists.random.at(2 * token));
  const auto high = static_cast<uint32_t>(lists.random.at(2 * token + 1));
  return uint64_t{high} << 32 | low;
}

const std::vector<TokenId> kTokens = {5, 6, 5, 7, 5};

TEST(SamplingLists, HaveAnEntryForEveryChunkThatAsksForAToken) {
  const SamplingParams cold = {.temperature = 0.0, .top_k = 3, .top_p = 0.25, .min_p = 0.5};
  const SamplingParams warm = {.temperature = 1.5, .top_k = -1};
  const TokenChunk step[] = {chunk_of(kTokens, &cold), chunk_of(kTokens, nullptr),
                             chunk_of(kTokens, &warm)};
  const SamplingLists lists = list_sampling(step);
  EXPECT_EQ(lists.num_tokens(), 2);
  EXPECT_THAT(lists.temperature, ElementsAre(0.0f, 1.5f));
  EXPECT_THAT(lists.top_k, ElementsAre(3, 0));
  EXPECT_THAT(lists.top_p, ElementsAre(0.25f, 1.0f));
  EXPECT_THAT(lists.min_p, ElementsAre(0.5f, 0.0f));
  EXPECT_EQ(lists.random.size(), 4u);
}

TEST(SamplingLists, ATopPBelowAllOfFloat32IsStillAboveZero) {
  const SamplingParams params = {.temperature = 1.0, .top_p = 1e-50};
  const TokenChunk step[] = {chunk_of(kTokens, &params)};
  EXPECT_GT(list_sampling(step).top_p.front(), 0.0f);
}

TEST(SamplingLists, RandomBitsAreThoseOfSeedAndAnswerIndexAlone) {
  const SamplingParams first = {.temperature = 1.0, .seed = 7};
  const SamplingParams second = {.temperature = 2.0, .seed = uint64_t{1} << 40};
  const TokenChunk step[] = {chunk_of(kTokens, &first, 0), chunk_of(kTokens, &first, 1),
                             chunk_of(kTokens, &second, 1)};
  const SamplingLists lists = list_sampling(step);
  EXPECT_EQ(bits_of(lists, 0), random_bits(7, 0));
  EXPECT_EQ(bits_of(lists, 1), random_bits(7, 1));
  EXPECT_EQ(bits_of(lists, 2), random_bits(uint64_t{1} << 40, 1));

  const std::vector<TokenId> other_tokens = {1};
  const TokenChunk alone[] = {chunk_of(other_tokens, &first, 1)};
  EXPECT_EQ(bits_of(list_sampling(alone), 0), bits_of(lists, 1)) << "the company does not matter";
}

TEST(PenaltyLists, ListDistinctTokensWithTheirCountsInTheAnswer) {
  const SamplingParams none;
  const SamplingParams all = {.frequency_penalty = 0.5};
  const SamplingParams last_two = {.repetition_penalty = 1.5, .penalty_window = 2};
  const SamplingParams more_than_all = {.presence_penalty = -1.0, .penalty_window = 64};
  const TokenChunk step[] = {chunk_of(kTokens, &none, 5), chunk_of(kTokens, &all, 5),
                             chunk_of(kTokens, nullptr), chunk_of(kTokens, &last_two, 5),
                             chunk_of(kTokens, &more_than_all, 5)};
  const PenaltyLists lists = list_penalties(step);
  EXPECT_THAT(lists.offsets, ElementsAre(0, 0, 3, 5, 8));
  EXPECT_THAT(lists.tokens, ElementsAre(5, 6, 7, 7, 5, 5, 6, 7));
  EXPECT_THAT(lists.counts, ElementsAre(3, 1, 1, 1, 1, 3, 1, 1));
  EXPECT_THAT(lists.repetition, ElementsAre(1.0f, 1.0f, 1.5f, 1.0f));
  EXPECT_THAT(lists.frequency, ElementsAre(0.0f, 0.5f, 0.0f, 0.0f));
  EXPECT_THAT(lists.presence, ElementsAre(0.0f, 0.0f, 0.0f, -1.0f));
}

TEST(PenaltyLists, OnlyRepetitionCountsThePrompt) {
  const SamplingParams occurrence = {.presence_penalty = 0.5, .frequency_penalty = 0.5};
  const SamplingParams all = {.repetition_penalty = 1.5, .frequency_penalty = 0.5};
  const SamplingParams last_four = {.repetition_penalty = 1.5, .penalty_window = 4};
  const TokenChunk step[] = {chunk_of(kTokens, &occurrence, 0), chunk_of(kTokens, &occurrence, 2),
                             chunk_of(kTokens, &all, 0), chunk_of(kTokens, &all, 3),
                             chunk_of(kTokens, &last_four, 1)};
  const PenaltyLists lists = list_penalties(step);
  EXPECT_THAT(lists.offsets, ElementsAre(0, 0, 2, 5, 8, 11));
  EXPECT_THAT(lists.tokens, ElementsAre(7, 5, 5, 6, 7, 5, 6, 7, 6, 5, 7));
  EXPECT_THAT(lists.counts, ElementsAre(1, 1, 0, 0, 0, 2, 0, 1, 0, 1, 0));
}

TEST(PenaltyLists, BarredTokensAreListedOnceAndAsSuch) {
  const std::vector<TokenId> barred = {2, 5};
  const SamplingParams params = {.presence_penalty = 0.5};
  const SamplingParams none;
  TokenChunk step[] = {chunk_of(kTokens, &params, 5), chunk_of(kTokens, &none)};
  for (TokenChunk& chunk : step) chunk.barred = barred;
  const PenaltyLists lists = list_penalties(step);
  EXPECT_THAT(lists.offsets, ElementsAre(0, 4, 6));
  EXPECT_THAT(lists.tokens, ElementsAre(6, 7, 2, 5, 2, 5));
  EXPECT_THAT(lists.counts,
              ElementsAre(1, 1, kBarredCount, kBarredCount, kBarredCount, kBarredCount));
  EXPECT_TRUE(has_penalized_draw(step));
}

TEST(PenaltyLists, AStepHasAPenaltyWhenADrawOfItHas) {
  const SamplingParams none;
  const SamplingParams penalty = {.presence_penalty = 0.5};
  const TokenChunk plain[] = {chunk_of(kTokens, &none), chunk_of(kTokens, nullptr)};
  const TokenChunk penalized[] = {chunk_of(kTokens, &none), chunk_of(kTokens, &penalty)};
  EXPECT_FALSE(has_penalized_draw(plain));
  EXPECT_TRUE(has_penalized_draw(penalized));
  EXPECT_THAT(list_penalties(plain).tokens, IsEmpty());
}

}  // namespace
}  // namespace tessera
