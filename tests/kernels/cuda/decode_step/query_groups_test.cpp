// KV heads with more query heads than an item of attention has rows.
#include <gtest/gtest.h>

#include "kernels/cuda/decode_step/make_plan.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

TEST(QueryGroupsTest, HaveEightHeadsOrFewer) {
  EXPECT_EQ(query_groups(1), 1);
  EXPECT_EQ(query_groups(8), 1);
  EXPECT_EQ(query_groups(9), 3);
  EXPECT_EQ(query_groups(10), 2);
  EXPECT_EQ(query_groups(11), 11);
  EXPECT_EQ(query_groups(16), 2);
}

// GLM-4 9B, whose intermediate_size is filled up.
TEST(QueryGroupsTest, AreItemsOfAttentionInTheInstanceForAnyBlock) {
  FusedDecodeShape shape{.hidden_size = 4096,
                         .intermediate_size = 13824,
                         .vocab_size = 151552,
                         .num_heads = 32,
                         .num_kv_heads = 2,
                         .head_dim = 128,
                         .page_size = 64,
                         .is_bfloat16 = true,
                         .gpu = kH200};
  const FusedDecodePlan plan = plan_fused_decode({}, shape);
  EXPECT_EQ(plan.problem, "");
  EXPECT_EQ(plan.num_groups, 4);
  EXPECT_EQ(plan.group_heads, 8);
  EXPECT_EQ(plan.block.num_kv_heads, 2);
  EXPECT_EQ(fused_instance(plan.block, false, 128), FusedInstance::kAnyBlock);
  shape.num_kv_heads = 4;
  const FusedDecodePlan without = plan_fused_decode({}, shape);
  EXPECT_EQ(without.num_groups, 4);
  EXPECT_EQ(without.block.groups_per_kv_head, 1);
  EXPECT_EQ(fused_instance(without.block, false, 128), FusedInstance::kLlama);
}

}  // namespace
}  // namespace tessera
