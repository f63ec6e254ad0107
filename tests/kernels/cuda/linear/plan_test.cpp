#include "kernels/cuda/linear/plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/cuda/linear/gated/plan.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

constexpr GpuTraits kAmpere = {.compute_capability = 80, .num_multiprocessors = 108};

LinearKernel kernel(int64_t num_tokens, const GpuTraits& device) {
  return plan_linear({.num_tokens = num_tokens, .out_features = 4096, .in_features = 4096}, device)
      .kernel;
}

TEST(LinearPlanTest, FewTokensAreReadBound) {
  EXPECT_EQ(kernel(1, kH200), LinearKernel::kGemv);
  EXPECT_EQ(kernel(kGemvMaxTokens, kH200), LinearKernel::kGemv);
  EXPECT_EQ(kernel(kGemvMaxTokens + 1, kH200), LinearKernel::kSkinny);
  EXPECT_EQ(kernel(kSkinnyMaxTokens, kH200), LinearKernel::kSkinny);
  EXPECT_EQ(kernel(kSkinnyMaxTokens + 1, kH200), LinearKernel::kCublas);
  EXPECT_EQ(kernel(8192, kH200), LinearKernel::kCublas);
}

TEST(LinearPlanTest, NormsAddProductsOfSomeHundredTokens) {
  const auto parts = [](int64_t num_tokens, const GpuTraits& gpu, int64_t in_features = 4096,
                        int64_t out_features = 4096) {
    return residual_parts({num_tokens, out_features, in_features}, gpu);
  };
  EXPECT_EQ(parts(kSkinnyMaxTokens, kH200), 1);
  EXPECT_EQ(parts(kSkinnyMaxTokens + 1, kH200), kResidualParts);
  EXPECT_EQ(parts(kResidualPartsTokens, kH200), kResidualParts);
  EXPECT_EQ(parts(kResidualPartsTokens + 1, kH200), 1);
  EXPECT_EQ(parts(128, kH200, 4160), 1) << "65 times 64";
  EXPECT_EQ(parts(kResidualPartsTokens, kH200, 4096, 16384), 1) << "30 MiB";
  EXPECT_EQ(parts(128, kAmpere), 1);
  GpuTraits invariant = kH200;
  invariant.choice = KernelChoice::kBatchInvariant;
  EXPECT_EQ(parts(128, invariant), 1);
}

TEST(LinearPlanTest, SkinnyKernelTakesAnyInFeatures) {
  for (const int64_t in_features : {8, 72, 200, 1000, 4104}) {
    EXPECT_EQ(plan_linear({.num_tokens = 64, .out_features = 40, .in_features = in_features}, kH200)
                  .kernel,
              LinearKernel::kSkinny)
        << in_features;
  }
}

TEST(LinearPlanTest, OtherGpusHaveNoSkinnyKernel) {
  EXPECT_EQ(kernel(kGemvMaxTokens, kAmpere), LinearKernel::kGemv);
  EXPECT_EQ(kernel(kGemvMaxTokens + 1, kAmpere), LinearKernel::kCublas);
}

SkinnyPlan skinny(int64_t out_features, int64_t in_features, int64_t num_tokens = 64) {
  return plan_linear(
             {.num_tokens = num_tokens, .out_features = out_features, .in_features = in_features},
             kH200)
      .skinny;
}

TEST(LinearPlanTest, EveryMultiprocessorHasATile) {
  EXPECT_EQ(skinny(4096, 4096), (SkinnyPlan{.tile_rows = 64, .split = 2}));
  EXPECT_EQ(skinny(4096, 14336), (SkinnyPlan{.tile_rows = 64, .split = 2}));
  EXPECT_EQ(skinny(6144, 4096), (SkinnyPlan{.tile_rows = 96, .split = 2}));
  EXPECT_EQ(skinny(8192, 4096), (SkinnyPlan{.tile_rows = 64, .split = 1}));
  EXPECT_EQ(skinny(16896, 4096), (SkinnyPlan{.tile_rows = 128, .split = 1}));
  EXPECT_EQ(skinny(28672, 4096), (SkinnyPlan{.tile_rows = 128, .split = 1, .tiles_at_once = 2}));
  EXPECT_EQ(skinny(128256, 4096), (SkinnyPlan{.tile_rows = 128, .split = 1, .tiles_at_once = 2}));
}

TEST(LinearPlanTest, SeveralBlocksShareFewTiles) {
  EXPECT_EQ(skinny(3584, 18944), (SkinnyPlan{.tile_rows = 128, .split = 4}));
  EXPECT_EQ(skinny(3072, 8192), (SkinnyPlan{.tile_rows = 128, .split = 4})) << "24 clusters of 5";
  EXPECT_EQ(skinny(2560, 10240), (SkinnyPlan{.tile_rows = 128, .split = 5})) << "20 clusters of 6";
  EXPECT_EQ(skinny(2048, 11008), (SkinnyPlan{.tile_rows = 128, .split = 6}));
  EXPECT_EQ(skinny(1024, 3072), (SkinnyPlan{.tile_rows = 64, .split = 4})) << "more blocks";
  EXPECT_EQ(skinny(128, 264), (SkinnyPlan{.tile_rows = 64, .split = 2}));
  EXPECT_EQ(skinny(2056, 11008), (SkinnyPlan{.tile_rows = 64, .split = 2})) << "no whole tiles";
  EXPECT_EQ(skinny(1024, 504), (SkinnyPlan{.tile_rows = 64, .split = 2})) << "a step each";
}

TEST(LinearPlanTest, TilesThatRotateAreSharedByTwo) {
  const LinearShape shape{.num_tokens = 64, .out_features = 1152, .in_features = 896};
  const LinearPlan plan = plan_linear(shape, kH200);
  EXPECT_EQ(plan.skinny.split, 4);
  EXPECT_FALSE(fuses_rope(plan, 64));
  const LinearPlan rotating = rotating_plan(plan, shape, kH200.num_multiprocessors);
  EXPECT_EQ(rotating.skinny, (SkinnyPlan{.tile_rows = 64, .split = 2}));
  EXPECT_TRUE(fuses_rope(rotating, 64));
}

TEST(LinearPlanTest, FewFeaturesAreNotDivided) {
  EXPECT_EQ(skinny(40, 2 * kSkinnyStepFeatures).split, 2);
  EXPECT_EQ(skinny(40, 2 * kSkinnyStepFeatures - 8).split, 1);
}

// Of the busiest block: two tiles of 112 rows are fewer than two of 128, one of 128 fewer than two.
TEST(LinearPlanTest, GatedTilesAreEvenlyShared) {
  EXPECT_EQ(plan_gated_skinny(64, 14336, 132).tile_rows, 112);
  EXPECT_EQ(plan_gated_skinny(64, 8192, 132).tile_rows, 128);
  EXPECT_EQ(plan_gated_skinny(64, 5632, 132).tile_rows, 96);
  EXPECT_EQ(plan_gated_skinny(64, 3072, 132).tile_rows, 64);
  EXPECT_EQ(plan_gated_skinny(64, 18944, 132).tile_rows, 96);
  EXPECT_EQ(plan_gated_skinny(64, 12288, 132).tile_rows, 96) << "as even in tiles of 64";
  EXPECT_EQ(plan_gated_skinny(64, 10240, 132).tile_rows, 80);
}

TEST(LinearPlanTest, SeveralTilesOfABlockShareManyTokens) {
  EXPECT_EQ(plan_gated_skinny(64, 14336, 132).tiles_at_once, 2);
  EXPECT_EQ(plan_gated_skinny(33, 14336, 132).tiles_at_once, 2);
  EXPECT_EQ(plan_gated_skinny(32, 14336, 132).tiles_at_once, 1);
  EXPECT_EQ(plan_gated_skinny(64, 8192, 132).tiles_at_once, 1) << "a tile for each block";
  EXPECT_EQ(skinny(128256, 4096, 33).tiles_at_once, 2);
  EXPECT_EQ(skinny(128256, 4096, 32).tiles_at_once, 1);
  EXPECT_EQ(skinny(8192, 4096).tiles_at_once, 1);
}

TEST(LinearPlanTest, ChoosesGatedPlansThatAreBuilt) {
  for (int64_t out_features = 1; out_features < 100'000; out_features = out_features * 5 / 4 + 1) {
    for (const int64_t num_tokens : {9, 64}) {
      const SkinnyPlan plan = plan_gated_skinny(num_tokens, out_features, 132);
      EXPECT_NE(std::ranges::find(kGatedSkinnyPlans, plan), std::ranges::end(kGatedSkinnyPlans));
    }
  }
}

TEST(LinearPlanTest, GateAndUpOfMoreTokensHaveAKernel) {
  EXPECT_FALSE(takes_gated(kSkinnyMaxTokens, 14336, kH200)) << "the skinny kernel's";
  EXPECT_FALSE(takes_gated(kGatedMaxTokens + 1, 14336, kH200)) << "cuBLAS's";
  for (int64_t num_tokens = kSkinnyMaxTokens + 1; num_tokens <= kGatedMaxTokens; ++num_tokens) {
    EXPECT_TRUE(takes_gated(num_tokens, 14336, kH200)) << num_tokens;
  }
  EXPECT_TRUE(takes_gated(512, 3072, kH200));
  EXPECT_FALSE(takes_gated(256, 3072, kH200)) << "half of the multiprocessors have a tile";
  EXPECT_FALSE(takes_gated(192, 10240, kH200)) << "the second round has 41 of 66 pairs";
  EXPECT_FALSE(takes_gated(512, 14340, kH200)) << "rows of results are not whole vectors";
  EXPECT_FALSE(takes_gated(512, 14336, kAmpere));
  GpuTraits invariant = kH200;
  invariant.choice = KernelChoice::kBatchInvariant;
  EXPECT_FALSE(takes_gated(512, 14336, invariant));
}

TEST(LinearPlanTest, GatedTilesFillTheLastRound) {
  const auto plan = [](int64_t num_tokens, int64_t intermediate_size) {
    return plan_gated(num_tokens, intermediate_size, 132);
  };
  EXPECT_EQ(plan(65, 14336), (GatedPlan{112, PairShares::kTokens})) << "one tile of tokens";
  EXPECT_EQ(plan(128, 14336), (GatedPlan{112, PairShares::kTokens}));
  EXPECT_EQ(plan(256, 14336), (GatedPlan{112, PairShares::kWeights}));
  EXPECT_EQ(plan(384, 14336), (GatedPlan{112, PairShares::kTokens})) << "three tiles of tokens";
  EXPECT_EQ(plan(512, 14336), (GatedPlan{112, PairShares::kWeights}));
  EXPECT_EQ(plan(8192, 14336), (GatedPlan{128, PairShares::kWeights}));
  EXPECT_EQ(plan(256, 18944), (GatedPlan{96, PairShares::kWeights}));
  EXPECT_EQ(plan(768, 18944), (GatedPlan{128, PairShares::kWeights}));
  EXPECT_EQ(plan(1024, 18944), (GatedPlan{128, PairShares::kWeights}));
}

TEST(LinearPlanTest, NormsPassWithoutTheirScaleBetweenSkinnyProducts) {
  EXPECT_TRUE(defers_norm_scale(9, 4096, kH200));
  EXPECT_TRUE(defers_norm_scale(64, 8192, kH200));
  EXPECT_TRUE(defers_norm_scale(64, 17024, kH200));
  EXPECT_FALSE(defers_norm_scale(kGemvMaxTokens, 4096, kH200));
  EXPECT_FALSE(defers_norm_scale(kSkinnyMaxTokens + 1, 4096, kH200));
  EXPECT_FALSE(defers_norm_scale(64, 4096, kAmpere));
  EXPECT_FALSE(defers_norm_scale(64, 5120, kH200)) << "tiles of 96 rows shared by 2";
  EXPECT_FALSE(defers_norm_scale(64, 4064, kH200)) << "no multiple of 128";
  for (int64_t hidden_size = 128; hidden_size <= 4224; hidden_size += 128) {
    EXPECT_TRUE(defers_norm_scale(64, hidden_size, kH200)) << hidden_size;
  }
}

TEST(LinearPlanTest, RotatesHeadsThatTilesHold) {
  const auto fuses = [](int64_t num_tokens, int64_t out_features, int64_t head_dim,
                        const GpuTraits& device) {
    const LinearShape shape{
        .num_tokens = num_tokens, .out_features = out_features, .in_features = 4096};
    return fuses_rope(rotating_plan(plan_linear(shape, device), shape, device.num_multiprocessors),
                      head_dim);
  };
  EXPECT_TRUE(fuses(9, 6144, 128, kH200));
  EXPECT_TRUE(fuses(64, 3072, 64, kH200));
  EXPECT_FALSE(fuses(kGemvMaxTokens, 6144, 128, kH200));
  EXPECT_FALSE(fuses(kSkinnyMaxTokens + 1, 6144, 128, kH200));
  EXPECT_FALSE(fuses(64, 6144, 128, kAmpere));
  EXPECT_FALSE(fuses(64, 10240, 128, kH200)) << "tiles of a block each";
  EXPECT_FALSE(fuses(64, 3840, 80, kH200));
}

TEST(LinearPlanTest, ChoosesWhatIsBuilt) {
  for (int64_t out_features = 1; out_features < 200'000; out_features = out_features * 5 / 4 + 1) {
    for (const int64_t in_features : {8, 64, 248, 256, 264, 1024, 53248}) {
      const SkinnyPlan plan = skinny(out_features, in_features);
      EXPECT_NE(std::ranges::find(kSkinnyPlans, plan), std::ranges::end(kSkinnyPlans));
      // With fewer tokens, nothing else that results could depend on.
      SkinnyPlan of_few = skinny(out_features, in_features, 9);
      of_few.tiles_at_once = plan.tiles_at_once;
      EXPECT_EQ(of_few, plan);
      // Blocks that share a tile all run at once, and each has a step of 128 features.
      if (plan.split == 1) continue;
      const int64_t tiles = (out_features + plan.tile_rows - 1) / plan.tile_rows;
      EXPECT_LE(tiles * plan.split, kH200.num_multiprocessors);
      EXPECT_GE((in_features + 127) / 128, plan.split);
    }
  }
}

}  // namespace
}  // namespace tessera
