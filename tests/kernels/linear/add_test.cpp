#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class LinearAddTest : public BackendTest {
 protected:
  void check(int64_t num_tokens, int64_t in_features, int64_t out_features, bool has_bias,
             float multiplier) const {
    SCOPED_TRACE(testing::Message()
                 << num_tokens << " tokens, " << in_features << " -> " << out_features
                 << (has_bias ? ", bias" : "") << ", times " << multiplier);
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const DType dtype = operations().weight_dtype(DType::kBFloat16);
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight = rounded(random.normal(out_features * in_features, 0.05), dtype);
    const auto residual = rounded(random.normal(num_tokens * out_features, 4.0), DType::kFloat32);
    const auto bias = rounded(random.normal(out_features, 3.0), DType::kFloat32);
    const Shape shape{num_tokens, out_features};
    const DeviceTensor sum = floats(residual, shape);
    const DeviceTensor device_weight =
        to_device(backend(), weight, dtype, {out_features, in_features});
    const DeviceTensor device_bias = floats(bias, {out_features});
    WeightMatrix matrix = device_weight;
    if (has_bias) matrix.bias = device_bias;
    operations().linear_add(sum, activations(x, {num_tokens, in_features}), matrix, multiplier);
    Reference expected = reference_linear(x, weight, in_features);
    if (has_bias) add_bias(expected, bias);
    for (size_t i = 0; i < residual.size(); ++i) {
      expected.values[i] = residual[i] + multiplier * expected.values[i];
      expected.magnitudes[i] = std::abs(residual[i]) + multiplier * expected.magnitudes[i];
    }
    expect_close(host(sum), expected, shape, {.out = DType::kFloat32, .length = in_features + 3});
  }
};

TEST_P(LinearAddTest, AddsToTheResidual) {
  for (const int64_t num_tokens : {1, 2, 3, 8, 9, 17, 33, 129}) {
    for (const auto& [in_features, out_features] :
         std::vector<std::pair<int64_t, int64_t>>{{64, 64}, {136, 131}, {1000, 257}}) {
      check(num_tokens, in_features, out_features, false, 1.0f);
      check(num_tokens, in_features, out_features, false, 0.22f);
      check(num_tokens, in_features, out_features, true, 1.0f);
      check(num_tokens, in_features, out_features, true, 0.22f);
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
