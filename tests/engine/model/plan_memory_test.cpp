#include "engine/model/plan_memory.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

constexpr int64_t kOwnChunk = 3000;

int64_t step_tokens(int64_t prefill_chunk, int64_t max_sequences = 1,
                    int64_t context_size = 131072) {
  const WantedSizes wanted{.max_sequences = max_sequences, .prefill_chunk = prefill_chunk};
  return step_limits(wanted, DeviceType::kCuda, context_size, kOwnChunk).max_tokens;
}

TEST(StepLimits, ChunkIsTheDevicesUnlessGiven) {
  EXPECT_EQ(step_tokens(0), kOwnChunk);
  EXPECT_EQ(step_tokens(7), 7);
}

TEST(StepLimits, EverySequenceHasATokenAndNoStepMoreThanThereAre) {
  EXPECT_EQ(step_tokens(16, 64), 64);
  EXPECT_EQ(step_tokens(0, 2, 100), 200);
}

TEST(StepLimits, PromptsLeaveRoomForThoseWhoDecode) {
  const auto beside_decodes = [](const WantedSizes& wanted, DeviceType device) {
    return step_limits(wanted, device, 4096, kOwnChunk).max_tokens_beside_decodes;
  };
  EXPECT_EQ(beside_decodes({.max_sequences = 8}, DeviceType::kCpu), kCpuTokensBesideDecodes);
  EXPECT_EQ(beside_decodes({.max_sequences = 8}, DeviceType::kCuda), kCudaTokensBesideDecodes);
  EXPECT_EQ(beside_decodes({.max_sequences = 8, .prefill_chunk = 512}, DeviceType::kCpu), 0);
  EXPECT_EQ(beside_decodes({.max_sequences = 1}, DeviceType::kCuda), 0);
}

TEST(StepLimits, PenaltiesOfOneSequenceListAllItsTokensThoseOfManySomeEach) {
  EXPECT_EQ(max_penalized_tokens({.max_sequences = 1, .context_size = 100}, 32000), 100);
  EXPECT_EQ(max_penalized_tokens({.max_sequences = 1, .context_size = 131072}, 32000), 32000);
  EXPECT_EQ(max_penalized_tokens({.max_sequences = 512, .context_size = 131072}, 32000),
            512 * 1024);
  EXPECT_EQ(max_penalized_tokens({.max_sequences = 4, .context_size = 100}, 32000), 400);
}

TEST(ActivationsPart, IsOfTheMemoryBesideTheWeights) {
  constexpr size_t kGiB = size_t{1} << 30;
  MemoryPlan plan = {.weights_bytes = kGiB,
                     .kv_bytes = 2 * kGiB,
                     .activation_bytes = kGiB,
                     .free_bytes = 9 * kGiB};
  EXPECT_TRUE(plan.fits_with_activations_in_one_of(8));
  ++plan.activation_bytes;
  EXPECT_FALSE(plan.fits_with_activations_in_one_of(8));
  EXPECT_TRUE(plan.fits_with_activations_in_one_of(7));
  plan.kv_bytes = 8 * kGiB;
  EXPECT_FALSE(plan.fits_with_activations_in_one_of(7));
  plan = {.weights_bytes = kGiB, .free_bytes = kGiB / 2};
  EXPECT_FALSE(plan.fits_with_activations_in_one_of(8));
}

TEST(LongestContext, WholePagesTimesThePageSizeFit32BitsOnCuda) {
  for (const int64_t page_size : {16, 64, 256}) {
    const int64_t longest = longest_context(DeviceType::kCuda, page_size);
    EXPECT_EQ(longest % page_size, 0);
    EXPECT_LT(longest * page_size, int64_t{1} << 32);
    EXPECT_GE((longest + page_size) * page_size, int64_t{1} << 32);
    EXPECT_GT(longest_context(DeviceType::kCpu, page_size), longest);
  }
}

// A context of 10 pages, and memory for so many pages beside everything else.
int64_t num_pages(int64_t max_sequences, size_t pages_of_memory, DeviceType device) {
  MemoryPlan plan = {.weights_bytes = 5000,
                     .kv_bytes_per_token = 4,
                     .activation_bytes = 700,
                     .limits = {.max_sequences = max_sequences, .context_size = 145},
                     .page_size = 16};
  plan.free_bytes = size_t{1} << 40;
  plan.free_bytes -= plan.unplanned_bytes() - pages_of_memory * 16 * 4;
  return choose_num_pages(plan, device);
}

TEST(KvPages, AreAsManyAsSequencesCanNeedAndMemoryHolds) {
  EXPECT_EQ(num_pages(1, 1000, DeviceType::kCuda), 10);
  EXPECT_EQ(num_pages(8, 1000, DeviceType::kCuda), 80);
  EXPECT_EQ(num_pages(512, 1000, DeviceType::kCuda), 1000);
  EXPECT_EQ(num_pages(512, 1000, DeviceType::kCpu), 500) << "a host has other uses for its memory";
  EXPECT_EQ(num_pages(512, 3, DeviceType::kCuda), 10) << "which does not fit then";
}

}  // namespace
}  // namespace tessera
