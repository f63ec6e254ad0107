// What holds of the CPU's operations alone: bits that no number of threads changes, and rotations
// that are computed once for all layers of a step.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/linear/normed_rows.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/rows/kv_rows.h"

namespace tessera {
namespace {

using Bytes = std::vector<std::vector<uint8_t>>;

struct LayerSizes {
  int64_t hidden;
  int64_t num_heads;
  int64_t num_kv_heads;
  int64_t head_dim;
  int64_t intermediate;

  int64_t query_features() const { return num_heads * head_dim; }
  int64_t qkv_features() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

// The demo model's, and some that no vector and no tile divides.
constexpr LayerSizes kLayerSizes[] = {
    {384, 6, 2, 64, 1024}, {131, 3, 1, 34, 77}, {515, 5, 5, 22, 1027}};

// The results of a layer without attention, as the model calls the operations.
Bytes run_layer(Backend& backend, const LayerSizes& sizes, int64_t num_tokens) {
  FusedOperations& fused = backend.fused_operations({});
  RandomValues random(static_cast<uint64_t>(num_tokens));
  const auto matrix = [&](int64_t rows, int64_t columns) {
    return to_device(backend, random.normal(rows * columns, 0.1), DType::kBFloat16,
                     {rows, columns});
  };
  const auto floats = [&](const Shape& shape) {
    return to_device(backend, random.normal(shape.num_elements()), DType::kFloat32, shape);
  };
  const DeviceTensor residual = floats({num_tokens, sizes.hidden});
  const DeviceTensor norm_weight = floats({sizes.hidden});
  const PoisonedRows rows(backend, num_tokens, sizes.hidden);
  fused.begin_norm(rows.view(), residual, norm_weight);

  const Shape page_shape{1, sizes.num_kv_heads, num_tokens, sizes.head_dim};
  const DeviceTensor keys = poisoned(backend, DType::kFloat32, page_shape);
  const DeviceTensor values = poisoned(backend, DType::kFloat32, page_shape);
  const DeviceTensor query =
      poisoned(backend, DType::kFloat32, {num_tokens, sizes.num_heads, sizes.head_dim});
  std::vector<int32_t> slots(static_cast<size_t>(num_tokens));
  std::iota(slots.begin(), slots.end(), 0);
  const DeviceTensor qkv_proj = matrix(sizes.qkv_features(), sizes.hidden);
  fused.normed_linear_rope_store_kv(
      {.query = query,
       .pages = {keys.view, values.view},
       .qkv = poisoned(backend, DType::kFloat32, {num_tokens, sizes.qkv_features()}),
       .positions = to_device(backend, random.integers(num_tokens, 0, 4096), {num_tokens}),
       .kv_slots = to_device(backend, slots, {num_tokens}),
       .rope_table = to_device(backend, rope_table(sizes.head_dim), DType::kFloat32,
                               {2, sizes.head_dim / 2})},
      rows.view(), qkv_proj);
  fused.linear_add_begin_norm(residual, rows.view(),
                              query.view.reshape({num_tokens, sizes.query_features()}),
                              matrix(sizes.hidden, sizes.query_features()), norm_weight);
  const DeviceTensor hidden = poisoned(backend, DType::kFloat32, {num_tokens, sizes.intermediate});
  fused.normed_linear_activate_mul(
      hidden, rows.view(), matrix(2 * sizes.intermediate, sizes.hidden),
      poisoned(backend, DType::kFloat32, {num_tokens, 2 * sizes.intermediate}), Activation::kSilu);
  return {bytes_of(backend, query), bytes_of(backend, keys), bytes_of(backend, values),
          bytes_of(backend, residual), bytes_of(backend, hidden)};
}

TEST(CpuOperationsTest, ResultsDoNotDependOnThreads) {
  const auto one = make_cpu_backend(1);
  const auto two = make_cpu_backend(2);
  const auto seven = make_cpu_backend(7);
  for (const LayerSizes& sizes : kLayerSizes) {
    for (const int64_t num_tokens : {1, 5, 33}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, hidden size " << sizes.hidden);
      const Bytes expected = run_layer(*one, sizes, num_tokens);
      EXPECT_TRUE(run_layer(*two, sizes, num_tokens) == expected);
      EXPECT_TRUE(run_layer(*seven, sizes, num_tokens) == expected);
    }
  }
}

// One that has computed other rotations before, for as many tokens, and one that has not.
TEST(CpuOperationsTest, RotationsAreThoseOfTheStep) {
  constexpr int64_t kHeadDim = 64;
  constexpr int64_t kTokens = 3;
  const auto rotate = [&](Backend& backend, const std::vector<int32_t>& positions, double theta) {
    std::vector<double> table = rope_table(kHeadDim);
    for (double& value : table) value *= theta;
    const DeviceTensor query = poisoned(backend, DType::kFloat32, {kTokens, 1, kHeadDim});
    const DeviceTensor keys = poisoned(backend, DType::kFloat32, {1, 1, kTokens, kHeadDim});
    const DeviceTensor values = poisoned(backend, DType::kFloat32, {1, 1, kTokens, kHeadDim});
    backend.operations().rope_store_kv(
        {.query = query,
         .pages = {keys.view, values.view},
         .qkv = to_device(backend, RandomValues(1).normal(kTokens * 3 * kHeadDim), DType::kFloat32,
                          {kTokens, 3 * kHeadDim}),
         .positions = to_device(backend, positions, {kTokens}),
         .kv_slots = to_device(backend, std::vector<int32_t>{0, 1, 2}, {kTokens}),
         .rope_table = to_device(backend, table, DType::kFloat32, {2, kHeadDim / 2})});
    return bytes_of(backend, keys);
  };
  const auto used = make_cpu_backend(2);
  // More tables by turns than are kept.
  for (const std::vector<int32_t>& positions :
       {std::vector<int32_t>{0, 1, 2}, {3, 4, 5}, {3, 4, 6}, {0, 1, 2}}) {
    for (const double theta : {1.0, 0.5, 1.0, 0.25, 0.125, 0.5, 1.0}) {
      const auto unused = make_cpu_backend(2);
      EXPECT_EQ(rotate(*used, positions, theta), rotate(*unused, positions, theta));
    }
  }
}

}  // namespace
}  // namespace tessera
