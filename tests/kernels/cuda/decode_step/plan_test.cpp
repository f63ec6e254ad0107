#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cuda/decode_step/make_plan.h"

namespace tessera {
namespace {

constexpr FusedDecodeShape kLlama8B{.hidden_size = 4096,
                                    .intermediate_size = 14336,
                                    .vocab_size = 128256,
                                    .num_heads = 32,
                                    .num_kv_heads = 8,
                                    .head_dim = 128,
                                    .page_size = 64,
                                    .is_bfloat16 = true,
                                    .gpu = {.compute_capability = 90,
                                            .num_multiprocessors = 132,
                                            .shared_bytes = 232448,
                                            .hopper_code_built = true}};

FusedDecodeShape llama_1b() {
  FusedDecodeShape shape = kLlama8B;
  shape.hidden_size = 2048;
  shape.intermediate_size = 8192;
  shape.head_dim = 64;
  return shape;
}

FusedDecodeShape tiny() {
  FusedDecodeShape shape = kLlama8B;
  shape.hidden_size = 256;
  shape.intermediate_size = 256;
  shape.vocab_size = 1003;
  shape.num_heads = 4;
  shape.num_kv_heads = 1;
  shape.head_dim = 64;
  return shape;
}

// The items that blocks have and the items that they claim are every row of a product once.
TEST(FusedDecodePlanTest, ItemsCoverEachRowOnce) {
  for (const FusedDecodeShape& shape : {kLlama8B, llama_1b(), tiny()}) {
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    ASSERT_TRUE(plan.runs()) << plan.problem;
    for (const FusedProduct& product : plan.products) {
      const int claimed = product.num_items - product.static_items * plan.num_blocks;
      EXPECT_GE(claimed, 0);
      EXPECT_TRUE(product.claims_many != 0 || claimed < plan.num_blocks);
      std::vector<int> times(static_cast<size_t>(product.rows + kUnitRows), 0);
      for (int item = 0; item < product.num_items; ++item) {
        for (int half = 0; half <= product.is_paired; ++half) {
          const int row = product.row(item, half);
          ASSERT_LT(row, product.rows);
          for (int r = row; r < row + kUnitRows; ++r) ++times[static_cast<size_t>(r)];
        }
      }
      times.resize(static_cast<size_t>(product.rows));
      EXPECT_THAT(times, testing::Each(1)) << product.rows << " rows";
    }
  }
}

TEST(FusedDecodePlanTest, LongProductsAreClaimedAtTheirEnd) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  EXPECT_EQ(plan.products[kGateUp].static_items, 1792 / 132 - kClaimedItems);
  EXPECT_EQ(plan.products[kGateUp].claims_many, 1);
  EXPECT_EQ(plan.products[kDown].static_items, 512 / 132);
  EXPECT_EQ(plan.products[kDown].claims_many, 0);
}

// The exchange relies on it: a block's words in the residual stream say that it is done.
TEST(FusedDecodePlanTest, EveryBlockHasItemsOfTheResidualStream) {
  for (const FusedDecodeShape& shape : {kLlama8B, llama_1b(), tiny()}) {
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    EXPECT_GE(plan.products[kOProj].static_items, 1);
    EXPECT_GE(plan.products[kDown].static_items, 1);
  }
}

TEST(FusedDecodePlanTest, PairsAreHalvesOfHeadsAndGateWithUp) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedProduct& qkv = plan.products[kQkv];
  EXPECT_EQ(qkv.row(0, 1) - qkv.row(0, 0), 64);
  EXPECT_EQ(qkv.row(7, 0), 56);
  EXPECT_EQ(qkv.row(8, 0), 128);  // the next head
  const FusedProduct& gate_up = plan.products[kGateUp];
  EXPECT_EQ(gate_up.row(5, 0), 40);
  EXPECT_EQ(gate_up.row(5, 1), 40 + 14336);
}

TEST(FusedDecodePlanTest, LayoutsDoNotOverlap) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedExchangeLayout layout = fused_exchange_layout(plan, 3);
  EXPECT_EQ(layout.residual_mid - layout.residual_in, 3 * 4096);
  EXPECT_EQ(layout.weighted_in - layout.residual_mid, 3 * 4096);
  EXPECT_EQ(layout.weighted_mid - layout.weighted_in, 3 * 2048);
  EXPECT_EQ(layout.squares_in - layout.weighted_mid, 3 * 2048);
  EXPECT_EQ(layout.squares_mid - layout.squares_in, 3 * kSquareShares);
  EXPECT_EQ(layout.qkv - layout.squares_mid, 3 * kSquareShares);
  EXPECT_EQ(layout.attention_out - layout.qkv, 3 * 6144);
  EXPECT_EQ(layout.hidden - layout.attention_out, 3 * 2048);
  EXPECT_EQ(layout.size - layout.hidden, 3 * 7168);
  EXPECT_EQ(fused_partial_words(4, 128), 4 * 128 + 4);
}

TEST(FusedDecodePlanTest, ReplicasOfASingleTokenDoNotOverlap) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedExchangeLayout layout = fused_exchange_layout(plan, 1);
  const int replicas = exchange_replicas(1);
  EXPECT_GT(replicas, 1);
  EXPECT_EQ(layout.weighted_mid - layout.weighted_in, replicas * 2048);
  EXPECT_EQ(layout.squares_in - layout.weighted_mid, replicas * 2048);
  EXPECT_EQ(layout.squares_mid - layout.squares_in, replicas * kSquareShares);
  EXPECT_EQ(layout.qkv - layout.squares_mid, replicas * kSquareShares);
  EXPECT_EQ(layout.attention_out - layout.qkv, 6144);
  EXPECT_EQ(layout.hidden - layout.attention_out, replicas * 2048);
  EXPECT_EQ(layout.size - layout.hidden, replicas * 7168);
}

TEST(FusedDecodePlanTest, LightLayersAskForLessAtATime) {
  const FusedDecodePlan small = plan_fused_decode({}, llama_1b());
  EXPECT_EQ(small.most_under_way, kFewUnderWay);
  const FusedDecodePlan large = plan_fused_decode({}, kLlama8B);
  EXPECT_EQ(large.most_under_way, kMaxFusedStages);
}

TEST(FusedDecodePlanTest, SharedMemoryHoldsTheRings) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedSharedMemory one = fused_shared_memory(plan, 1, 128, 232448);
  EXPECT_EQ(one.stages, 6);
  EXPECT_LE(one.total_bytes + fused_static_bytes(1), 232448);
  const FusedSharedMemory eight = fused_shared_memory(plan, 8, 128, 232448);
  EXPECT_GE(eight.stages, kLeastFusedStages);
  EXPECT_LE(eight.total_bytes + fused_static_bytes(8), 232448);
  EXPECT_EQ(plan.max_tokens, 8);
}

TEST(FusedDecodePlanTest, SaysWhyItDeclines) {
  const auto problem = [](auto change) {
    FusedDecodeShape shape = kLlama8B;
    change(shape);
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    EXPECT_FALSE(plan.runs());
    return plan.problem;
  };
  using testing::HasSubstr;
  EXPECT_THAT(problem([](auto& shape) { shape.gpu.compute_capability = 80; }), HasSubstr("sm_90"));
  EXPECT_THAT(problem([](auto& shape) { shape.is_bfloat16 = false; }), HasSubstr("bfloat16"));
  EXPECT_THAT(problem([](auto& shape) { shape.head_dim = 96; }), HasSubstr("head_dim is 96"));
  EXPECT_THAT(problem([](auto& shape) { shape.intermediate_size = 14400; }), HasSubstr("14400"));
  EXPECT_THAT(problem([](auto& shape) { shape.hidden_size = 16384; }), HasSubstr("16384"));
  EXPECT_THAT(problem([](auto& shape) { shape.page_size = 8; }), HasSubstr("pages of 8"));
  EXPECT_THAT(problem([](auto& shape) { shape.num_kv_heads = 2; }), HasSubstr("32 query and 2"));
  EXPECT_THAT(problem([](auto& shape) { shape.gpu.shared_bytes = 100 * 1024; }),
              HasSubstr("rings"));
}

}  // namespace
}  // namespace tessera
