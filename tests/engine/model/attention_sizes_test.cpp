#include "engine/model/attention_sizes.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

TEST(AttentionSizesTest, OfNothing) {
  const AttentionBatch sizes = attention_sizes({});
  EXPECT_EQ(sizes.num_sequences, 0);
  EXPECT_EQ(sizes.num_decodes, 0);
  EXPECT_EQ(sizes.num_decode_keys, 0);
  EXPECT_EQ(sizes.num_prefill_scores, 0);
}

TEST(AttentionSizesTest, DecodesLeadAndPromptsFollow) {
  const std::vector<TokenChunk> step = {{.begin = 99, .num_tokens = 1},
                                        {.begin = 20, .num_tokens = 8},
                                        {.begin = 30, .num_tokens = 9},
                                        {.begin = 0, .num_tokens = 1},
                                        {.begin = 0, .num_tokens = 300}};
  const AttentionBatch sizes = attention_sizes(step);
  EXPECT_EQ(sizes.num_sequences, 5);
  EXPECT_EQ(sizes.num_decodes, 2);
  EXPECT_EQ(sizes.max_decode_query_length, 8);
  EXPECT_EQ(sizes.max_query_length, 300);
  EXPECT_EQ(sizes.max_context_length, 300);
  EXPECT_EQ(sizes.num_decode_keys, 100 + 28);
  int64_t num_scores = 1;
  for (int64_t seen = 31; seen <= 39; ++seen) num_scores += seen;
  for (int64_t seen = 1; seen <= 300; ++seen) num_scores += seen;
  EXPECT_EQ(sizes.num_prefill_scores, num_scores);
}

TEST(AttentionSizesTest, SampledTokensAreDecodes) {
  const SamplingParams params;
  const std::vector<TokenId> drafts = {5, 6};
  const std::vector<TokenChunk> step = {
      {.begin = 40, .num_tokens = 1, .sampling = &params},
      {.drafts = drafts, .begin = 10, .num_tokens = 3, .sampling = &params},
      {.begin = 100, .num_tokens = 200},
      {.begin = 0, .num_tokens = 70, .sampling = &params}};
  const AttentionBatch sizes = sampled_attention_sizes(step);
  EXPECT_EQ(sizes.num_sequences, 4);
  EXPECT_EQ(sizes.num_decodes, 4);
  EXPECT_EQ(sizes.max_decode_query_length, 3);
  EXPECT_EQ(sizes.max_query_length, 3);
  EXPECT_EQ(sizes.max_context_length, 300);
  EXPECT_EQ(sizes.num_decode_keys, 41 + 13 + 70);  // nothing is read of the chunk that draws none
  EXPECT_EQ(sizes.num_prefill_scores, 0);
}

}  // namespace
}  // namespace tessera
