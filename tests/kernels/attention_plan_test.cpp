#include "kernels/cuda/attention_plan.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kSlots = DecodeAttentionPlan::kBlocksPerMultiprocessor * kMultiprocessors;

DecodeAttentionShape shape(int64_t num_sequences, int64_t num_heads, int64_t num_kv_heads,
                           int64_t max_context_length) {
  return {.num_sequences = num_sequences,
          .num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .max_context_length = max_context_length,
          .num_multiprocessors = kMultiprocessors};
}

TEST(AttentionPlanTest, ShortContextsAreNotSplit) {
  for (const int64_t context_length : {0, 1, 63, 64}) {
    EXPECT_EQ(plan_decode_attention(shape(1, 32, 8, context_length)).num_splits, 1);
  }
}

TEST(AttentionPlanTest, OneLongContextFillsTheGpuOnce) {
  for (const int64_t context_length : {4096, 32768, 131072}) {
    const auto plan = plan_decode_attention(shape(1, 32, 8, context_length));
    EXPECT_LE(plan.num_splits * 8, kSlots);
    EXPECT_GE(plan.num_splits * 8, kSlots * 3 / 4);
  }
}

TEST(AttentionPlanTest, ManySequencesAreNotSplit) {
  EXPECT_EQ(plan_decode_attention(shape(64, 32, 8, 4096)).num_splits, 1);
  EXPECT_EQ(plan_decode_attention(shape(1000, 8, 8, 131072)).num_splits, 1);
}

// Whatever the shape: splits cover the context in whole tiles, none is empty, and the partial
// results fit the workspace that was promised for any shape with these heads.
TEST(AttentionPlanTest, CoversTheContextWithinTheWorkspace) {
  constexpr int64_t kHeadDim = 128;
  for (const auto& [num_heads, num_kv_heads] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {1, 1}, {7, 7}, {32, 8}, {64, 8}, {40, 1}, {128, 128}}) {
    const int64_t promised =
        max_partial_elements(num_heads, num_kv_heads, kHeadDim, kMultiprocessors);
    for (const int64_t num_sequences : {1, 2, 3, 8, 33, 64, 500}) {
      for (const int64_t context_length : {1, 64, 65, 1000, 4096, 4097, 100000, 1 << 20}) {
        SCOPED_TRACE(testing::Message() << num_sequences << " x " << context_length << ", heads "
                                        << num_heads << "/" << num_kv_heads);
        const auto plan =
            plan_decode_attention(shape(num_sequences, num_heads, num_kv_heads, context_length));
        EXPECT_EQ(plan.split_tokens % DecodeAttentionPlan::kTileTokens, 0);
        EXPECT_GE(plan.num_splits * plan.split_tokens, context_length);
        EXPECT_LT((plan.num_splits - 1) * plan.split_tokens, context_length);
        if (plan.num_splits > 1) {
          EXPECT_LE(partial_elements(num_sequences * num_heads * plan.num_splits, kHeadDim),
                    promised);
        }
      }
    }
  }
}

}  // namespace
}  // namespace tessera
