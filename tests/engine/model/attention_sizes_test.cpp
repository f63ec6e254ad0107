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

}  // namespace
}  // namespace tessera
