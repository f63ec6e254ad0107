#include "kernels/cuda/attention/prefill/plan.h"

#include <gtest/gtest.h>

#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

TEST(PrefillPlanTest, HopperTakesItsHeadDims) {
  for (const int64_t head_dim : {64, 96, 128, 256}) {
    EXPECT_EQ(plan_prefill_attention(kH200, head_dim, false).kernel, PrefillKernel::kHopper);
    EXPECT_EQ(plan_prefill_attention(kH200, head_dim, true).kernel, PrefillKernel::kHopper);
  }
  for (const int64_t head_dim : {32, 80}) {
    EXPECT_EQ(plan_prefill_attention(kH200, head_dim, false).kernel, PrefillKernel::kPortable);
  }
}

TEST(PrefillPlanTest, OtherDevicesAndBuildsAreToldWhy) {
  GpuTraits device = kH200;
  device.compute_capability = 89;
  EXPECT_EQ(plan_prefill_attention(device, 128, false).kernel, PrefillKernel::kPortable);
  device.compute_capability = 100;  // sm_90a code does not run there
  EXPECT_EQ(describe(plan_prefill_attention(device, 128, false)),
            "mma.sync and cp.async, because the compute capability is not 9.0");
  device = kH200;
  device.hopper_code_built = false;
  EXPECT_EQ(plan_prefill_attention(device, 128, false).reason, "built without sm_90a");
  device = kH200;
  device.choice = KernelChoice::kPortable;
  EXPECT_EQ(plan_prefill_attention(device, 128, false).reason, "it was asked for");
}

TEST(PrefillPlanTest, TilesFitAMultiprocessor) {
  for (const int64_t head_dim : {64, 96, 128, 256}) {
    for (const bool has_softcap : {false, true}) {
      const PrefillTileShape shape = plan_prefill_attention(kH200, head_dim, has_softcap).shape;
      EXPECT_EQ(shape.tile_queries % 64, 0);
      const int64_t bytes =
          2 * head_dim * (shape.tile_queries + 2 * shape.stages * shape.tile_keys);
      EXPECT_LE(bytes, 227 * 1024) << head_dim;
      // Per thread: scores and output in float32, rounded scores two to a register.
      const int64_t registers = shape.tile_keys / 2 + head_dim / 2 + shape.tile_keys / 4;
      EXPECT_LE(registers, shape.tile_queries == 192 ? 130 : 200) << head_dim;
    }
  }
}

TEST(PrefillPlanTest, DescriptionNamesTheTiles) {
  EXPECT_EQ(describe(plan_prefill_attention(kH200, 128, false)),
            "wgmma and the copy engine, tiles of 128 queries x 128 keys, 2 stages, because of "
            "compute capability 9.0 and head_dim 64, 96, 128 or 256");
}

}  // namespace
}  // namespace tessera
