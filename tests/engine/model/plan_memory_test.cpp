#include "engine/model/plan_memory.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

int64_t step_tokens(int64_t prefill_chunk, DeviceType device, int64_t max_sequences = 1,
                    int64_t context_size = 131072) {
  const WantedSizes wanted{.max_sequences = max_sequences, .prefill_chunk = prefill_chunk};
  return step_limits(wanted, device, context_size).max_tokens;
}

TEST(StepLimits, ChunkIsTheDevicesUnlessGiven) {
  EXPECT_EQ(step_tokens(0, DeviceType::kCuda), kCudaPrefillChunk);
  EXPECT_EQ(step_tokens(0, DeviceType::kCpu), kCpuPrefillChunk);
  EXPECT_EQ(step_tokens(7, DeviceType::kCuda), 7);
}

TEST(StepLimits, EverySequenceHasATokenAndNoStepMoreThanThereAre) {
  EXPECT_EQ(step_tokens(16, DeviceType::kCuda, 64), 64);
  EXPECT_EQ(step_tokens(0, DeviceType::kCuda, 2, 100), 200);
}

}  // namespace
}  // namespace tessera
