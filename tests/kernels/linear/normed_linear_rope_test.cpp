// The projection of queries, keys and values with all that follows up to attention, compared with
// the single operations in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/linear/normed_rows.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/rows/kv_rows.h"

namespace tessera {
namespace {

struct RopeSizes {
  int64_t hidden;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t page_size;

  int64_t token_heads() const { return num_heads + 2 * num_kv_heads; }
  int64_t qkv_rows() const { return token_heads() * head_dim; }
};
// On an H200 one kernel, with tiles of 64 rows and of 96, with the norm's scale still to come and
// without, with inputs of whole panels of 64 features and others, and heads that no tile divides.
constexpr RopeSizes kFusedSizes[] = {{512, 8, 2, 64, 16},  {512, 6, 2, 128, 64},
                                     {520, 3, 1, 128, 64}, {256, 32, 8, 128, 64},
                                     {512, 72, 8, 64, 32}, {264, 72, 8, 64, 48}};
// Too few features to share, too many rows, other heads.
constexpr RopeSizes kOtherSizes[] = {
    {128, 4, 2, 64, 16}, {256, 50, 8, 128, 64}, {512, 6, 2, 80, 64}, {256, 3, 1, 32, 32}};

class NormedLinearRopeTest : public BackendTest {
 protected:
  DType weight_type() const { return operations().weight_dtype(DType::kBFloat16); }
  DeviceTensor matrix(const std::vector<double>& values, int64_t rows, int64_t columns) const {
    return to_device(backend(), values, weight_type(), {rows, columns});
  }
};

// Tokens and weights, on the host and on the device. Tokens that are left out change no others.
struct Problem {
  Problem(Backend& backend, const RopeSizes& sizes, int64_t num_tokens, uint64_t seed)
      : sizes(sizes) {
    RandomValues random(seed);
    residual = random.normal(num_tokens * sizes.hidden);
    // Rows of different sizes, so that a row's scale shows.
    for (size_t i = 0; i < residual.size(); ++i) {
      residual[i] *=
          std::pow(1.3, static_cast<double>(i / static_cast<size_t>(sizes.hidden)) - 20.0);
    }
    residual = rounded(residual, DType::kFloat32);
    norm_weight = norm_weights(random, sizes.hidden);
    const DType weight_type = backend.operations().weight_dtype(DType::kBFloat16);
    weight = rounded(random.normal(sizes.qkv_rows() * sizes.hidden, 0.05), weight_type);
    bias = rounded(random.normal(sizes.qkv_rows()), DType::kFloat32);
    positions = random.integers(num_tokens, 0, 4096);
    table = rope_table(sizes.head_dim, 1.25);
    page_shape = {num_tokens / sizes.page_size + 3, sizes.num_kv_heads, sizes.page_size,
                  sizes.head_dim};
    slots = random.permutation(page_shape[0] * sizes.page_size);
    slots.resize(static_cast<size_t>(num_tokens));
    device_norm_weight = to_device(backend, norm_weight, DType::kFloat32, {sizes.hidden});
    device_weight = to_device(backend, weight, weight_type, {sizes.qkv_rows(), sizes.hidden});
    device_bias = to_device(backend, bias, DType::kFloat32, {sizes.qkv_rows()});
    device_residual = to_device(backend, residual, DType::kFloat32, {num_tokens, sizes.hidden});
    device_positions = to_device(backend, positions, {num_tokens});
    device_slots = to_device(backend, slots, {num_tokens});
    device_table = to_device(backend, table, DType::kFloat32, {2, sizes.head_dim / 2});
  }

  RopeSizes sizes;
  std::vector<double> residual, norm_weight, weight, bias, table;
  std::vector<int32_t> positions, slots;
  Shape page_shape;
  DeviceTensor device_residual, device_norm_weight, device_weight, device_bias, device_table;
  DeviceTensor device_positions, device_slots;
};

struct Results {
  DeviceTensor query, keys, values;

  // Of the problem's first tokens.
  Results(Backend& backend, const Problem& problem, int64_t num_tokens, bool has_bias = true)
      : query(poisoned(backend, backend.operations().activation_dtype(),
                       {num_tokens, problem.sizes.num_heads, problem.sizes.head_dim})),
        keys(poisoned(backend, backend.operations().activation_dtype(), problem.page_shape)),
        values(poisoned(backend, backend.operations().activation_dtype(), problem.page_shape)) {
    FusedOperations& fused = backend.fused_operations({});
    const PoisonedRows rows(backend, num_tokens, problem.sizes.hidden);
    const DeviceTensor qkv = poisoned(backend, backend.operations().activation_dtype(),
                                      {num_tokens, problem.sizes.qkv_rows()});
    const auto cut = [&](const DeviceTensor& tensor) { return tensor.view.slice(0, num_tokens); };
    WeightMatrix weight = problem.device_weight;
    if (has_bias) weight.bias = problem.device_bias;
    fused.begin_norm(rows.view(), cut(problem.device_residual), problem.device_norm_weight);
    fused.normed_linear_rope_store_kv({.query = query,
                                       .pages = {keys.view, values.view},
                                       .qkv = qkv,
                                       .positions = cut(problem.device_positions),
                                       .kv_slots = cut(problem.device_slots),
                                       .rope_table = problem.device_table},
                                      rows.view(), weight);
    backend.device().synchronize();
  }
};

TEST_P(NormedLinearRopeTest, MatchesReference) {
  const auto check = [&](const RopeSizes& sizes, int64_t num_tokens, bool has_bias) {
    SCOPED_TRACE(testing::Message() << num_tokens << " tokens, hidden size " << sizes.hidden << ", "
                                    << sizes.num_heads << "/" << sizes.num_kv_heads << " heads of "
                                    << sizes.head_dim << (has_bias ? ", bias" : ""));
    const Problem problem(backend(), sizes, num_tokens, static_cast<uint64_t>(num_tokens));
    const Results results(backend(), problem, num_tokens, has_bias);

    Reference qkv = reference_linear(
        reference_rms_norm(problem.residual, problem.norm_weight, kNormEpsilon).values,
        problem.weight, sizes.hidden);
    const double relative = norm_error(activation(), sizes.hidden);
    if (has_bias) {
      // The product may have been rounded to the activation type before, relative to its value.
      for (size_t i = 0; i < qkv.values.size(); ++i) {
        qkv.magnitudes[i] += unit_roundoff(activation()) / relative * std::abs(qkv.values[i]);
      }
      add_bias(qkv, problem.bias);
    }
    const auto part = [&](const std::vector<double>& all, int64_t token, int64_t head) {
      const auto begin = all.begin() + (token * sizes.token_heads() + head) * sizes.head_dim;
      return std::vector<double>(begin, begin + sizes.head_dim);
    };
    const auto unrotated = [&](int64_t token, int64_t head) {
      return Reference{part(qkv.values, token, head), part(qkv.magnitudes, token, head)};
    };
    const auto rotated = [&](int64_t token, int64_t head) {
      const Reference plain = unrotated(token, head);
      Reference result = reference_rope(plain.values, problem.positions[static_cast<size_t>(token)],
                                        problem.table);
      // Errors of both elements that make one. They may have been rounded to the activation type,
      // relative to their values, which the rotation's reference has as magnitudes.
      const double rounding = 1.0 + unit_roundoff(activation()) / relative;
      const auto half = static_cast<size_t>(sizes.head_dim / 2);
      for (size_t j = 0; j < 2 * half; ++j) {
        const double amplitude = problem.table[half + j % half];
        result.magnitudes[j] =
            rounding * result.magnitudes[j] +
            amplitude * (plain.magnitudes[j % half] + plain.magnitudes[j % half + half]);
      }
      return result;
    };
    Reference query, keys, values;
    for (int64_t t = 0; t < num_tokens; ++t) {
      for (int64_t h = 0; h < sizes.num_heads; ++h) append(query, rotated(t, h));
      for (int64_t h = 0; h < sizes.num_kv_heads; ++h) {
        append(keys, rotated(t, sizes.num_heads + h));
        append(values, unrotated(t, sizes.num_heads + sizes.num_kv_heads + h));
      }
    }
    const ErrorBound bound{.out = activation(), .length = sizes.hidden, .relative = relative};
    const Shape kv_shape{num_tokens, sizes.num_kv_heads, sizes.head_dim};
    const auto stored = [&](const Tensor& pages) {
      return stored_rows(host(pages), problem.page_shape, problem.slots);
    };
    expect_close(host(results.query), query, results.query.view.shape, bound);
    expect_close(stored(results.keys), keys, kv_shape, bound);
    expect_close(stored(results.values), values, kv_shape, bound);
  };
  for (const int64_t num_tokens : {1, 9, 33, 64, 65}) {
    for (const bool has_bias : {false, true}) {
      for (const RopeSizes& sizes : kFusedSizes) check(sizes, num_tokens, has_bias);
      for (const RopeSizes& sizes : kOtherSizes) check(sizes, num_tokens, has_bias);
    }
  }
}

// A token's results must not depend on others, nor on how many there are within one kernel.
TEST_P(NormedLinearRopeTest, IgnoresOtherTokens) {
  if (!runs_hopper()) GTEST_SKIP() << "what Hopper's kernels promise";
  for (const RopeSizes& sizes : kFusedSizes) {
    const Problem problem(backend(), sizes, 64, 17);
    const Results all(backend(), problem, 64);
    const auto of_all = bytes_of(backend(), all.query);
    const auto keys = host(all.keys);
    const auto values = host(all.values);
    for (const int64_t num_tokens : {63, 33, 17, 9}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, hidden size " << sizes.hidden);
      const Results results(backend(), problem, num_tokens);
      const auto query = bytes_of(backend(), results.query);
      ASSERT_TRUE(std::equal(query.begin(), query.end(), of_all.begin()));
      const std::vector<int32_t> slots(problem.slots.begin(), problem.slots.begin() + num_tokens);
      const auto expect_same = [&](const Tensor& pages, const std::vector<double>& all_pages) {
        const auto rows = stored_rows(host(pages), problem.page_shape, slots);
        const auto expected = stored_rows(all_pages, problem.page_shape, problem.slots);
        ASSERT_TRUE(std::equal(rows.begin(), rows.end(), expected.begin()));
      };
      expect_same(results.keys, keys);
      expect_same(results.values, values);
    }
  }
}

// On CUDA, RoPE adds the bias where no product does it and no norm of the heads comes before. Each
// row of these weights picks one feature, so that no sum is rounded: results are those of the
// product and RoPE one after the other, bit by bit.
TEST_P(NormedLinearRopeTest, GivesTheBitsOfSingleOperations) {
  const auto check = [&](const RopeSizes& sizes, int64_t num_tokens, QkNorm norm, bool has_bias,
                         bool is_fp8, const QueryScalingSpec& scaling = {}) {
    SCOPED_TRACE(testing::Message()
                 << num_tokens << " tokens, hidden size " << sizes.hidden << ", " << sizes.num_heads
                 << "/" << sizes.num_kv_heads << " heads of " << sizes.head_dim << ", norm "
                 << static_cast<int>(norm) << (has_bias ? ", bias" : "") << (is_fp8 ? ", fp8" : "")
                 << (scaling.beta == 0.0 ? "" : ", scaled queries"));
    const Problem problem(backend(), sizes, num_tokens, static_cast<uint64_t>(num_tokens));
    RandomValues random(7);
    std::vector<double> picks(static_cast<size_t>(sizes.qkv_rows() * sizes.hidden));
    for (int64_t row = 0; row < sizes.qkv_rows(); ++row) {
      picks[static_cast<size_t>(row * sizes.hidden + row * 5 % sizes.hidden)] = 1.0;
    }
    const DeviceTensor data = matrix(picks, sizes.qkv_rows(), sizes.hidden);
    WeightMatrix weight = data.view;
    if (has_bias) weight.bias = problem.device_bias;
    const int64_t norm_size = norm == QkNorm::kNone ? 0
                              : norm == QkNorm::kPerHead
                                  ? 2 * sizes.head_dim
                                  : (sizes.num_heads + sizes.num_kv_heads) * sizes.head_dim;
    const DeviceTensor qk_norm = floats(norm_weights(random, norm_size), {norm_size});
    const std::vector<double> powers(static_cast<size_t>(sizes.num_kv_heads), 0.25);
    const DeviceTensor scales = floats(powers, {sizes.num_kv_heads});
    const PoisonedRows rows(backend(), num_tokens, sizes.hidden);
    fused().begin_norm(rows.view(), problem.device_residual, problem.device_norm_weight);
    const auto results = [&](bool is_fused) {
      const DType stored = is_fp8 ? DType::kFloat8E4M3 : activation();
      const DeviceTensor query =
          poisoned(backend(), activation(), {num_tokens, sizes.num_heads, sizes.head_dim});
      const DeviceTensor keys = poisoned(backend(), stored, problem.page_shape);
      const DeviceTensor values = poisoned(backend(), stored, problem.page_shape);
      const DeviceTensor qkv = poisoned(backend(), activation(), {num_tokens, sizes.qkv_rows()});
      const RopeStoreKvParams to = {
          .query = query,
          .pages = is_fp8 ? KvPages{keys, values, scales, scales} : KvPages{keys, values},
          .qkv = qkv,
          .positions = problem.device_positions,
          .kv_slots = problem.device_slots,
          .rope_table = problem.device_table,
          .qk_norm_kind = norm,
          .qk_norm = norm == QkNorm::kNone ? Tensor{} : qk_norm.view,
          .norm_epsilon = static_cast<float>(kNormEpsilon),
          .query_scaling = scaling};
      if (is_fused) {
        fused().normed_linear_rope_store_kv(to, rows.view(), weight);
      } else {
        fused().normed_linear(qkv, rows.view(), weight);
        operations().rope_store_kv(to);
      }
      return std::vector{bytes_of(backend(), query), bytes_of(backend(), keys),
                         bytes_of(backend(), values)};
    };
    EXPECT_TRUE(results(true) == results(false));
  };
  constexpr RopeSizes kHeads128 = {512, 6, 2, 128, 64};
  for (const int64_t num_tokens : {1, 64, 65, 300}) {
    for (const bool has_bias : {false, true}) {
      for (const bool is_fp8 : {false, true}) {
        for (const QkNorm norm : {QkNorm::kNone, QkNorm::kPerHead, QkNorm::kWholeProjection}) {
          // A single kernel rounds once where bias and rotation follow.
          const bool is_one_kernel = num_tokens == 64 && norm == QkNorm::kNone && !is_fp8;
          if (!is_one_kernel) check(kHeads128, num_tokens, norm, has_bias, is_fp8);
        }
      }
      check({264, 9, 3, 64, 48}, num_tokens, QkNorm::kPerHead, has_bias, false);
      check({128, 50, 8, 256, 64}, num_tokens, QkNorm::kPerHead, has_bias, false);
      check({256, 3, 1, 80, 32}, num_tokens, QkNorm::kNone, has_bias, false);
      check(kHeads128, num_tokens, QkNorm::kNone, has_bias, false,
            {.beta = 0.1, .original_max_position_embeddings = 16});
    }
  }
}

// A chain as in a model, queued without a wait, so that launches overlap.
TEST_P(NormedLinearRopeTest, IsBitwiseRepeatable) {
  constexpr RopeSizes kSizes = {2048, 32, 8, 128, 64};
  for (const int64_t num_tokens : {9, 64}) {
    SCOPED_TRACE(num_tokens);
    const Problem problem(backend(), kSizes, num_tokens, 5);
    const DeviceTensor output =
        matrix(RandomValues(6).normal(kSizes.hidden * kSizes.num_heads * kSizes.head_dim, 0.02),
               kSizes.hidden, kSizes.num_heads * kSizes.head_dim);
    const PoisonedRows rows(backend(), num_tokens, kSizes.hidden);
    const DeviceTensor query =
        poisoned(backend(), activation(), {num_tokens, kSizes.num_heads, kSizes.head_dim});
    const DeviceTensor qkv = poisoned(backend(), activation(), {num_tokens, kSizes.qkv_rows()});
    const DeviceTensor keys = poisoned(backend(), activation(), problem.page_shape);
    const DeviceTensor values = poisoned(backend(), activation(), problem.page_shape);
    std::vector<std::vector<uint8_t>> first;
    const int num_runs = device().type() == DeviceType::kCuda ? 10 : 2;
    for (int run = 0; run < num_runs; ++run) {
      const DeviceTensor residual = floats(problem.residual, {num_tokens, kSizes.hidden});
      fused().begin_norm(rows.view(), residual, problem.device_norm_weight);
      for (int layer = 0; layer < 4; ++layer) {
        fused().normed_linear_rope_store_kv({.query = query,
                                             .pages = {keys.view, values.view},
                                             .qkv = qkv,
                                             .positions = problem.device_positions,
                                             .kv_slots = problem.device_slots,
                                             .rope_table = problem.device_table},
                                            rows.view(), problem.device_weight);
        fused().linear_add_begin_norm(
            residual, rows.view(),
            query.view.reshape({num_tokens, kSizes.num_heads * kSizes.head_dim}), output,
            problem.device_norm_weight);
      }
      const std::vector<std::vector<uint8_t>> results = {
          bytes_of(backend(), residual), bytes_of(backend(), keys), bytes_of(backend(), values)};
      if (run == 0) first = results;
      ASSERT_TRUE(results == first) << "run " << run;
    }
  }
}

FOR_EACH_BACKEND(NormedLinearRopeTest);

}  // namespace
}  // namespace tessera
