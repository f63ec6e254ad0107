#include "kernels/cuda/decode_step/rings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera {
namespace {

TEST(FusedRingsTest, RingsLieOneBehindTheOther) {
  for (int num_units = 24; num_units <= 60; ++num_units) {
    for (int num_chunks = 1; num_chunks <= 32; ++num_chunks) {
      for (const int spare : {0, 1, 2}) {
        const FusedRings rings = fused_rings(num_units, num_chunks, spare);
        SCOPED_TRACE(testing::Message() << num_units << " units, " << num_chunks << " chunks, "
                                        << rings.stages << " and " << rings.deep_stages);
        int stages = 0;
        for (int warp = 0; warp < kFusedWarps; ++warp) {
          EXPECT_EQ(rings.first_stage(warp), stages);
          EXPECT_GE(rings.of_warp(warp), kLeastFusedStages);
          EXPECT_GE(rings.of_warp(warp),
                    std::min(num_units / kFusedWarps, kMaxFusedStages) - spare);
          stages += rings.of_warp(warp);
        }
        EXPECT_EQ(rings.num_stages(), stages);
        EXPECT_LE(stages, num_units);
        EXPECT_LE(stages, kFusedWarps * kMaxFusedStages);
      }
    }
  }
}

TEST(FusedRingsTest, WarpsWithAChunkMoreGetWhatIsLeft) {
  EXPECT_EQ(fused_rings(48, 16, 2), (FusedRings{.stages = 6, .deep_stages = 6, .num_deep = 0}));
  EXPECT_EQ(fused_rings(46, 14, 0), (FusedRings{.stages = 5, .deep_stages = 6, .num_deep = 6}));
  EXPECT_EQ(fused_rings(45, 14, 0), (FusedRings{.stages = 5, .deep_stages = 5, .num_deep = 6}));
  EXPECT_EQ(fused_rings(29, 20, 0), (FusedRings{.stages = 3, .deep_stages = 4, .num_deep = 4}));
}

TEST(FusedRingsTest, OtherWarpsSpareStages) {
  EXPECT_EQ(fused_rings(48, 10, 1), (FusedRings{.stages = 5, .deep_stages = 9, .num_deep = 2}));
  EXPECT_EQ(fused_rings(48, 10, 2), (FusedRings{.stages = 4, .deep_stages = 12, .num_deep = 2}));
  EXPECT_EQ(fused_rings(34, 10, 2), (FusedRings{.stages = 3, .deep_stages = 8, .num_deep = 2}))
      << "no ring has less";
}

}  // namespace
}  // namespace tessera
