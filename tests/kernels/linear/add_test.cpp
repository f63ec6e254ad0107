#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class LinearAddTest : public BackendTest {};

TEST_P(LinearAddTest, AddsToTheResidual) {
  for (const int64_t num_tokens : {1, 2, 3, 8, 9, 17, 33, 129}) {
    for (const auto& [in_features, out_features] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {136, 131}, {1000, 257}}) {
      SCOPED_TRACE(testing::Message()
                   << num_tokens << " tokens, " << in_features << " -> " << out_features);
      RandomValues random(static_cast<uint64_t>(num_tokens));
      const DType dtype = operations().weight_dtype(DType::kBFloat16);
      const auto x = rounded(random.normal(num_tokens * in_features), activation());
      const auto weight = rounded(random.normal(out_features * in_features, 0.05), dtype);
      const auto residual = rounded(random.normal(num_tokens * out_features, 4.0), DType::kFloat32);
      const Shape shape{num_tokens, out_features};
      const DeviceTensor sum = floats(residual, shape);
      operations().linear_add(sum, activations(x, {num_tokens, in_features}),
                              to_device(backend(), weight, dtype, {out_features, in_features}));
      expect_close(host(sum), reference_linear(x, weight, in_features, residual), shape,
                   {.out = DType::kFloat32, .length = in_features + 1});
    }
  }
}

// Down-projections of trained models write values far from 1 into the residual stream, where
// rounding to 16 bits on the way would show.
TEST_P(LinearAddTest, DoesNotRoundThroughTheActivationType) {
  const std::vector<double> ones(512, 1.0);
  const DType dtype = operations().weight_dtype(DType::kBFloat16);
  const DeviceTensor sum = floats({0.25}, {1, 1});
  auto weight = ones;
  weight[0] = 0.5;  // 511.5 + 0.25 has more bits than bfloat16
  operations().linear_add(sum, activations(ones, {1, 512}),
                          to_device(backend(), weight, dtype, {1, 512}));
  EXPECT_EQ(host(sum), std::vector<double>{511.75});
}

FOR_EACH_BACKEND(LinearAddTest);

}  // namespace
}  // namespace tessera
