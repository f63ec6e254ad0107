#include "kernels/cuda/attention/mixed_step.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

// A step of a model with 32 query heads, 8 KV heads of 128 and pages of 64 tokens.
AttentionParams step(int64_t num_decodes, int64_t decode_length, int64_t num_prompts,
                     int64_t prompt_length) {
  const auto shape_only = [](DType dtype, const Shape& shape) {
    return Tensor{nullptr, dtype, DeviceType::kCuda, shape};
  };
  const Tensor pages = shape_only(DType::kBFloat16, {1024, 8, 64, 128});
  return {
      .query = shape_only(DType::kBFloat16, {num_decodes + num_prompts * prompt_length, 32, 128}),
      .pages = {pages, pages},
      .batch = {.num_sequences = num_decodes + num_prompts,
                .num_decodes = num_decodes,
                .num_decode_keys = num_decodes * decode_length,
                .num_prefill_scores = num_prompts * prompt_length * (prompt_length + 1) / 2}};
}

TEST(MixedStepTest, LeavesAsManyAsPromptsNeed) {
  // A prompt of a few hundred tokens beside hundreds of decodes has little to do.
  const int one_prompt = prefill_multiprocessors(step(193, 514, 1, 319), kH200);
  EXPECT_GE(one_prompt, 2);
  EXPECT_LE(one_prompt, 16);
  EXPECT_GE(prefill_multiprocessors(step(193, 514, 8, 319), kH200), 2 * one_prompt);
  EXPECT_GE(prefill_multiprocessors(step(50, 514, 1, 319), kH200), 2 * one_prompt);
  EXPECT_EQ(prefill_multiprocessors(step(1000, 8192, 1, 9), kH200), 2);
}

TEST(MixedStepTest, NeverTakesLongerThanOneAfterTheOther) {
  for (const int64_t num_decodes : {1, 50, 193, 1000}) {
    for (const int64_t decode_length : {10, 514, 8192}) {
      for (const int64_t num_prompts : {1, 2, 40}) {
        for (const int64_t prompt_length : {9, 128, 129, 500, 4096, 100000}) {
          const AttentionParams params =
              step(num_decodes, decode_length, num_prompts, prompt_length);
          const MixedWork work = mixed_work(params, 128, kH200.num_multiprocessors);
          const int left = prefill_multiprocessors(params, kH200);
          EXPECT_LE(left, 66);
          if (left == 0) continue;
          EXPECT_LT(work.end_beside(left), work.end_one_after_the_other());
          EXPECT_GE(work.end_beside(left),
                    std::max(work.decode_time, work.num_tiles * work.tile_time / 132));
        }
      }
    }
  }
}

TEST(MixedStepTest, TilesGoInRounds) {
  MixedWork work = {
      .decode_time = 100, .num_tiles = 3, .tile_time = 30, .num_multiprocessors = 132};
  EXPECT_EQ(work.end_beside(3), 100);
  work.num_tiles = 12;
  EXPECT_EQ(work.end_beside(3), 120);
  work.num_tiles = 13;  // the last begins when the decodes end
  EXPECT_EQ(work.end_beside(3), 130);
  work.num_tiles = 12 + 129;
  EXPECT_EQ(work.end_beside(3), 130);
  work.num_tiles = 12 + 129 + 3;
  EXPECT_EQ(work.end_beside(3), 150);
  EXPECT_EQ(work.end_one_after_the_other(), 100 + kLaunchTime + 2 * 30);
  // Half of the multiprocessors read two thirds as fast as three quarters of them.
  work.num_tiles = 66;
  EXPECT_EQ(work.end_beside(66), 150);
}

TEST(MixedStepTest, CountsWhatAWindowLeaves) {
  AttentionParams params = step(100, 4096, 1, 4096);
  const MixedWork all = mixed_work(params, 128, 132);
  params.sliding_window = 512;
  const MixedWork seen = mixed_work(params, 128, 132);
  EXPECT_DOUBLE_EQ(seen.decode_time, all.decode_time / 8);
  EXPECT_LT(seen.tile_time, all.tile_time);
  params.sliding_window = 8192;
  EXPECT_EQ(mixed_work(params, 128, 132).decode_time, all.decode_time);
  EXPECT_EQ(mixed_work(params, 128, 132).tile_time, all.tile_time);
}

TEST(MixedStepTest, CountsSharedPrefixesOnce) {
  AttentionParams params = step(100, 4096, 1, 300);
  const double all = mixed_work(params, 128, 132).decode_time;
  params.batch.shared.spared_tokens = 50 * 4096;
  EXPECT_DOUBLE_EQ(mixed_work(params, 128, 132).decode_time, all / 2);
}

TEST(MixedStepTest, TakesLongTilesToo) {
  AttentionParams params = step(193, 514, 1, 300);
  for (const int64_t keys : {300, 1300, 10000}) {  // that each of the 300 tokens sees
    params.batch.num_prefill_scores = 300 * keys;
    EXPECT_GT(prefill_multiprocessors(params, kH200), 0) << keys;
  }
}

TEST(MixedStepTest, DeclinesWhatItWasNotBuiltFor) {
  EXPECT_EQ(prefill_multiprocessors(step(0, 0, 1, 300), kH200), 0);
  EXPECT_EQ(prefill_multiprocessors(step(10, 100, 0, 0), kH200), 0);
  const AttentionParams mixed = step(10, 100, 1, 300);
  ASSERT_GT(prefill_multiprocessors(mixed, kH200), 0);

  GpuTraits gpu = kH200;
  gpu.choice = KernelChoice::kBatchInvariant;
  EXPECT_EQ(prefill_multiprocessors(mixed, gpu), 0);
  gpu.choice = KernelChoice::kPortable;
  EXPECT_EQ(prefill_multiprocessors(mixed, gpu), 0);
  gpu = kH200;
  gpu.compute_capability = 100;
  EXPECT_EQ(prefill_multiprocessors(mixed, gpu), 0);

  AttentionParams other = mixed;
  other.pages.keys.dtype = other.pages.values.dtype = DType::kFloat8E4M3;
  EXPECT_EQ(prefill_multiprocessors(other, kH200), 0);
  other = mixed;
  other.pages.keys.shape = other.pages.values.shape = {1024, 8, 64, 80};
  EXPECT_EQ(prefill_multiprocessors(other, kH200), 0);
}

}  // namespace
}  // namespace tessera
