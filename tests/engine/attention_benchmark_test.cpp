#include "engine/benchmark/attention_benchmark.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <utility>

#include "engine/benchmark/attention_inputs.h"
#include "kernels/backend.h"
#include "kernels/device_measurement.h"
#include "tests/engine/error_of.h"

namespace tessera {
namespace {

AttentionHeads small_heads() { return {.num_heads = 4, .num_kv_heads = 2, .head_dim = 32}; }

TEST(AttentionCaseTest, AQuerySeesWhatTheMaskLeaves) {
  AttentionHeads heads = small_heads();
  const AttentionCase step{.batch_size = 1, .query_length = 3, .context_length = 10};
  EXPECT_EQ(visible_keys(heads, step, 0).end, 8);
  EXPECT_EQ(visible_keys(heads, step, 2).end, 10);
  heads.sliding_window = 4;
  EXPECT_EQ(visible_keys(heads, step, 0).begin, 4);
  heads.sliding_window = 100;
  EXPECT_EQ(visible_keys(heads, step, 0).begin, 0);
  heads.sliding_window = 0;
  heads.causal = false;
  EXPECT_EQ(visible_keys(heads, step, 0).end, 10);
}

TEST(AttentionCaseTest, CountsHalfOfACausalSquare) {
  AttentionHeads heads = small_heads();
  const AttentionCase prompt{.batch_size = 2, .query_length = 100, .context_length = 100};
  const double square = 4.0 * 2 * 100 * 100 * 4 * 32;
  EXPECT_EQ(count_flops(heads, prompt), square / 2);
  heads.sliding_window = 1;
  EXPECT_EQ(count_flops(heads, prompt), square / 100);
  heads.sliding_window = 0;
  heads.causal = false;
  EXPECT_EQ(count_flops(heads, prompt), square);
}

TEST(AttentionCaseTest, CountsTheKeysAndValuesOfADecode) {
  AttentionHeads heads = small_heads();
  const AttentionCase decode{.batch_size = 3, .query_length = 1, .context_length = 1000};
  EXPECT_EQ(count_flops(heads, decode), 4.0 * 3 * 1000 * 4 * 32);
  EXPECT_EQ(count_kv_bytes(heads, decode, DType::kBFloat16), 2.0 * 3 * 1000 * 2 * 32 * 2);
  EXPECT_EQ(count_kv_bytes(heads, decode, DType::kFloat8E4M3), 2.0 * 3 * 1000 * 2 * 32);
  heads.sliding_window = 100;
  EXPECT_EQ(count_kv_bytes(heads, decode, DType::kBFloat16), 2.0 * 3 * 100 * 2 * 32 * 2);
}

TEST(NormalPoolTest, TheHostKnowsWhatATensorHolds) {
  const auto backend = make_cpu_backend(1);
  const NormalPool pool(DType::kFloat32, /*seed=*/1);
  const int64_t offset = NormalPool::kPeriod - 10;  // wraps around
  const Shape shape{40, 5};
  const Buffer buffer = backend->device().allocate(200 * sizeof(float), "test");
  const Tensor tensor{buffer.data(), DType::kFloat32, DeviceType::kCpu, shape};
  pool.fill(backend->device(), tensor, offset);
  double squares = 0.0;
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(tensor.as<float>()[i], *pool.row(i, offset));
    squares += std::pow(tensor.as<float>()[i], 2);
  }
  EXPECT_NEAR(squares / 200, 1.0, 0.5);
  fill_with_nan(backend->device(), tensor);
  for (int64_t i = 0; i < 200; ++i) EXPECT_TRUE(std::isnan(tensor.as<float>()[i]));
}

TEST(AttentionInputsTest, AnExactRowOverOneKeyIsItsValue) {
  const auto backend = make_cpu_backend(1);
  const NormalPool pool(DType::kFloat32, /*seed=*/1);
  const AttentionInputs inputs(backend->operations(), pool, pool, small_heads(),
                               {.batch_size = 1, .query_length = 9, .context_length = 9},
                               {.page_size = 4});
  // Standard attention's layout is contiguous, so that its first row is the first of the values.
  const Tensor values = inputs.standard_params(0).values;
  const std::vector<double> row = inputs.exact_row({0, 0, 0}, /*standard=*/true);
  for (size_t d = 0; d < 32; ++d) EXPECT_EQ(row[d], values.as<float>()[d]);
  // Of KV head 1, which heads 2 and 3 share.
  const std::vector<double> other = inputs.exact_row({0, 0, 3}, /*standard=*/true);
  for (size_t d = 0; d < 32; ++d) EXPECT_EQ(other[d], values.as<float>()[9 * 32 + d]);
}

// ||computed - exact|| / ||exact|| of the last query of KV head 0 and of KV head 1.
std::array<double, 2> errors_of_heads(const AttentionInputs& inputs) {
  std::array<double, 2> errors = {};
  for (size_t i = 0; i < errors.size(); ++i) {
    const AttentionRow row{0, 8, static_cast<int64_t>(2 * i)};
    const std::vector<double> exact = inputs.exact_row(row, /*standard=*/false);
    const std::vector<double> computed = inputs.computed_row(row, /*standard=*/false);
    double difference = 0.0, size = 0.0;
    for (size_t d = 0; d < exact.size(); ++d) {
      difference += std::pow(computed[d] - exact[d], 2);
      size += std::pow(exact[d], 2);
    }
    errors[i] = std::sqrt(difference / size);
  }
  return errors;
}

TEST(AttentionInputsTest, AWrongScaleOfFp8PagesShows) {
  const auto backend = make_cpu_backend(1);
  const NormalPool query_pool(DType::kFloat32, /*seed=*/1);
  const NormalPool kv_pool(DType::kFloat8E4M3, /*seed=*/1);
  const AttentionInputs inputs(backend->operations(), query_pool, kv_pool, small_heads(),
                               {.batch_size = 1, .query_length = 9, .context_length = 9},
                               {.page_size = 4, .kv_dtype = KvDType::kFloat8E4M3});
  AttentionParams params = inputs.params(0);
  EXPECT_TRUE(params.pages.is_fp8());
  backend->operations().attention(inputs.out(), params);
  for (const double error : errors_of_heads(inputs)) EXPECT_LE(error, 2e-5);
  std::swap(params.pages.key_scales, params.pages.value_scales);
  backend->operations().attention(inputs.out(), params);
  for (const double error : errors_of_heads(inputs)) EXPECT_GE(error, 0.1);
}

class AttentionBenchmarkTest : public testing::TestWithParam<KvDType> {};

TEST_P(AttentionBenchmarkTest, RunsChecksAndTimes) {
  AttentionBenchmark benchmark({.device = {.device = DeviceChoice::kCpu, .num_threads = 1},
                                .heads = small_heads(),
                                .layout = {.page_size = 16, .kv_dtype = GetParam()},
                                .repetitions = 3});
  const AttentionResult prefill =
      benchmark.run({.batch_size = 2, .query_length = 40, .context_length = 40});
  EXPECT_EQ(prefill.paged.seconds.size(), 3);
  EXPECT_LE(prefill.paged.largest_error, benchmark.tolerance());
  EXPECT_EQ(prefill.standard.problem, "only on a GPU");
  const AttentionResult decode =
      benchmark.run({.batch_size = 3, .query_length = 1, .context_length = 77});
  for (const double seconds : decode.paged.seconds) EXPECT_GT(seconds, 0.0);
}

INSTANTIATE_TEST_SUITE_P(Pages, AttentionBenchmarkTest,
                         testing::Values(KvDType::kActivation, KvDType::kFloat8E4M3));

TEST(StandardAttentionTest, TheCpuHasNoStandardAttention) {
  const auto backend = make_cpu_backend(1);
  const Error error = error_of([&] { backend->make_measurement()->make_standard_attention(); });
  EXPECT_STREQ(error.what(), "standard attention is not available on cpu");
}

}  // namespace
}  // namespace tessera
