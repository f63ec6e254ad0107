// Prefill whose products are float8_e4m3, beside the prefill that widens the same pages.
#include <gtest/gtest.h>

#include "kernels/cuda/attention/prefill_fp8/plan.h"
#include "tests/kernels/cuda/h200.h"

#ifdef TESSERA_CUDA
#include <cmath>

#include "kernels/cuda/attention/prefill_fp8/kernel.h"
#include "kernels/cuda/device/cuda_check.h"
#include "tests/kernels/attention/problem.h"
#include "tests/kernels/deadline.h"
#endif

namespace tessera {
namespace {

// An H200 of which FP8 attention is asked.
constexpr GpuTraits fp8_h200() {
  GpuTraits gpu = kH200;
  gpu.choice = KernelChoice::kFp8Attention;
  return gpu;
}

TEST(Fp8PrefillPlan, DeclinesWhatItWasNotBuiltFor) {
  EXPECT_EQ(fp8_prefill_problem(fp8_h200(), 128, KvDType::kFloat8E4M3), nullptr);
  EXPECT_NE(fp8_prefill_problem(fp8_h200(), 64, KvDType::kFloat8E4M3), nullptr);
  EXPECT_NE(fp8_prefill_problem(fp8_h200(), 128, KvDType::kActivation), nullptr);
  for (const KernelChoice choice :
       {KernelChoice::kFastest, KernelChoice::kPortable, KernelChoice::kBatchInvariant}) {
    GpuTraits gpu = fp8_h200();
    gpu.choice = choice;
    EXPECT_NE(fp8_prefill_problem(gpu, 128, KvDType::kFloat8E4M3), nullptr);
  }
  GpuTraits gpu = fp8_h200();
  gpu.compute_capability = 100;
  EXPECT_NE(fp8_prefill_problem(gpu, 128, KvDType::kFloat8E4M3), nullptr);
}

BackendLimits fp8_limits(int64_t max_sequences, int64_t context_length) {
  return {.max_sequences = max_sequences, .max_context_length = context_length, .num_kv_heads = 8};
}

TEST(Fp8PrefillPlan, ScratchHoldsASequenceOrSeveral) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  EXPECT_EQ(fp8_prefill_scratch(fp8_limits(1, 8192)).tiles, 8 * kMiB);
  EXPECT_EQ(fp8_prefill_scratch(fp8_limits(64, 8192)).tiles, 128 * kMiB);
  EXPECT_EQ(fp8_prefill_scratch(fp8_limits(64, 1 << 20)).tiles, 1024 * kMiB);
}

// What a step needs is never more than what its limits need.
TEST(Fp8PrefillPlan, AStepFitsInWhatItsLimitsTake) {
  for (const int64_t limit : {1, 64, 5000, 300000}) {
    for (const int64_t sequences : {1, 3, 100}) {
      const int64_t whole = fp8_prefill_scratch(fp8_limits(sequences, limit)).total();
      for (const int64_t length : {int64_t{0}, limit / 2, limit}) {
        EXPECT_LE(fp8_prefill_scratch(fp8_limits(1, length)).total(), whole);
        EXPECT_LE(fp8_prefill_scratch(fp8_limits(sequences, length)).total(), whole);
      }
    }
  }
}

#ifdef TESSERA_CUDA

// Rounding queries and weights to e4m3 costs 4e-2 of a normal output's deviation, relative.
constexpr double kLargestError = 0.06;

class Fp8PrefillTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (!runs_hopper()) GTEST_SKIP() << "Hopper only";
  }

  DeviceTensor run(const AttentionParams& params, int64_t most_bytes = kArrangedBytes) const {
    const Deadline deadline("FP8 prefill attention");
    const AttentionBatch& batch = params.batch;
    const int64_t bytes =
        fp8_prefill_scratch({.max_sequences = batch.num_sequences - batch.num_decodes,
                             .max_context_length = batch.max_context_length,
                             .num_kv_heads = params.pages.num_kv_heads()},
                            most_bytes)
            .total();
    const DeviceTensor scratch =
        poisoned(backend(), DType::kFloat32, {ceil_divide(bytes, int64_t{4})});
    const DeviceTensor schedule = to_device(backend(), std::vector<int32_t>{0, 0}, {2});
    DeviceTensor out = poisoned(backend(), activation(), params.query.shape);
    device().synchronize();
    int num_multiprocessors = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&num_multiprocessors, cudaDevAttrMultiProcessorCount, 0));
    launch_attention_prefill_fp8(out, params, scratch, schedule.view.as<int32_t>(),
                                 num_multiprocessors, nullptr, most_bytes);
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    return out;
  }

  void check(const AttentionSize& size, const std::vector<SequenceSize>& sequences,
             int64_t most_bytes = kArrangedBytes) const {
    const AttentionProblem problem(backend(), size, sequences);
    const AttentionParams params = problem.params();
    const std::vector<double> widened = host(problem.run());
    const std::vector<double> out = host(run(params, most_bytes));
    const auto starts = host(params.batch.query_starts);
    const auto first = static_cast<size_t>(starts[static_cast<size_t>(params.batch.num_decodes)] *
                                           static_cast<double>(size.num_heads * size.head_dim));
    for (size_t i = 0; i < first; ++i) ASSERT_TRUE(std::isnan(out[i])) << "row of a decode, " << i;
    double error = 0.0;
    double norm = 0.0;
    for (size_t i = first; i < out.size(); ++i) {
      ASSERT_TRUE(std::isfinite(out[i])) << i;
      error += (out[i] - widened[i]) * (out[i] - widened[i]);
      norm += widened[i] * widened[i];
    }
    EXPECT_LE(std::sqrt(error), kLargestError * std::sqrt(norm));
  }
};

constexpr AttentionSize kSize{
    .num_heads = 8, .num_kv_heads = 2, .head_dim = 128, .fp8_pages = true};

TEST_P(Fp8PrefillTest, LengthsAroundTiles) {
  for (const int64_t length : {9, 63, 64, 65, 127, 128, 129, 256, 257, 385}) {
    check(kSize, {{length, length}});
    check(kSize, {{length, length + 131}});
  }
}

TEST_P(Fp8PrefillTest, SequencesBesideDecodes) {
  for (const int64_t page_size : {16, 32, 128, 256}) {
    AttentionSize size = kSize;
    size.page_size = page_size;
    check(size, {{1, 70}, {3, 300}, {33, 33}, {150, 1000}, {129, 257}, {64, 40}, {9, 0}});
  }
}

// A scratch for one sequence at a time, and for two.
TEST_P(Fp8PrefillTest, SequencesOneAfterTheOther) {
  const std::vector<SequenceSize> sequences = {{1, 70}, {150, 400}, {33, 33}, {200, 257}, {9, 10}};
  check(kSize, sequences, 1);
  check(kSize, sequences, 4 * arranged_sequence_bytes(2, 400));
}

TEST_P(Fp8PrefillTest, QueriesOfAnyMagnitude) {
  for (const double deviation : {1e-7, 1e-3, 3.0}) {
    AttentionSize size = kSize;
    size.query_deviation = deviation;
    check(size, {{200, 700}});
  }
}

TEST_P(Fp8PrefillTest, RepeatsBitByBit) {
  const AttentionProblem problem(backend(), kSize, {{700, 2000}, {40, 100}, {300, 300}});
  const AttentionParams params = problem.params();
  const std::vector<uint8_t> first = bytes_of(backend(), run(params));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(bytes_of(backend(), run(params)) == first);
}

TEST_P(Fp8PrefillTest, DeclinesWhatItWasNotBuiltFor) {
  const AttentionProblem problem(backend(), kSize, {{20, 20}});
  AttentionParams params = problem.params();
  EXPECT_EQ(fp8_layer_problem(params), nullptr);
  params.causal = false;
  EXPECT_NE(fp8_layer_problem(params), nullptr);
  params = problem.params();
  params.sliding_window = 5;
  EXPECT_NE(fp8_layer_problem(params), nullptr);
  params = problem.params();
  params.softcap = 50.0f;
  EXPECT_NE(fp8_layer_problem(params), nullptr);
}

FOR_EACH_BACKEND(Fp8PrefillTest);

#endif

}  // namespace
}  // namespace tessera
