#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class RmsNormTest : public BackendTest {
 protected:
  // residual += multiplier * rms_norm(x)
  void check_add(int64_t num_tokens, int64_t hidden_size, float multiplier) const {
    SCOPED_TRACE(testing::Message() << num_tokens << " x " << hidden_size << ", added");
    RandomValues random(4);
    const Shape shape{num_tokens, hidden_size};
    const auto x = rounded(random.normal(shape.num_elements(), 7.0), DType::kFloat32);
    const auto weight = rounded(random.normal(hidden_size), DType::kFloat32);
    const auto residual = rounded(random.normal(shape.num_elements(), 3.0), DType::kFloat32);
    const DeviceTensor sum = floats(residual, shape);
    operations().rms_norm_add(sum, floats(x, shape), floats(weight, {hidden_size}), kNormEpsilon,
                              multiplier);
    Reference expected = reference_rms_norm(x, weight, kNormEpsilon);
    for (size_t i = 0; i < residual.size(); ++i) {
      expected.values[i] = residual[i] + multiplier * expected.values[i];
      expected.magnitudes[i] = std::abs(residual[i]) + multiplier * expected.magnitudes[i];
    }
    expect_close(host(sum), expected, shape, {.length = hidden_size + kOtherRoundings});
  }

  void check(const std::vector<double>& x, const std::vector<double>& weight) const {
    const auto hidden_size = static_cast<int64_t>(weight.size());
    const Shape shape{static_cast<int64_t>(x.size()) / hidden_size, hidden_size};
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    operations().rms_norm(out, floats(x, shape), floats(weight, {hidden_size}), kNormEpsilon);
    expect_close(host(out), reference_rms_norm(x, weight, kNormEpsilon), shape,
                 {.out = activation(), .length = hidden_size + kOtherRoundings});
  }

 private:
  // Mean, epsilon, root, quotient and product, counted generously.
  static constexpr int64_t kOtherRoundings = 64;
};

TEST_P(RmsNormTest, MatchesReference) {
  RandomValues random(1);
  for (const int64_t hidden_size : {1, 7, 64, 129, 512, 2048, 2051, 4096, 5000, 8192, 12004}) {
    const auto weight = rounded(random.normal(hidden_size), DType::kFloat32);
    for (const int64_t num_tokens : {1, 3, 17, 33, 129}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " x " << hidden_size);
      check(rounded(random.normal(num_tokens * hidden_size), DType::kFloat32), weight);
    }
  }
}

TEST_P(RmsNormTest, HandlesTinyLargeAndZeroRows) {
  constexpr int64_t kHiddenSize = 512;
  RandomValues random(2);
  const std::vector<double> weight(kHiddenSize, 1.0);
  for (const double deviation : {0.0, 1e-12, 1e-3, 1e4, 1e15}) {
    SCOPED_TRACE(testing::Message() << "deviation " << deviation);
    check(rounded(random.normal(2 * kHiddenSize, deviation), DType::kFloat32), weight);
  }
}

TEST_P(RmsNormTest, AddsToTheResidual) {
  for (const int64_t hidden_size : {1, 7, 64, 129, 512, 2051, 5000, 8192, 12004}) {
    for (const int64_t num_tokens : {1, 3, 33}) check_add(num_tokens, hidden_size, 1.0f);
    check_add(2, hidden_size, 0.22f);
  }
}

TEST_P(RmsNormTest, IsBitwiseRepeatable) {
  const Shape shape{33, 2048};
  RandomValues random(3);
  const DeviceTensor x = floats(random.normal(shape.num_elements()), shape);
  const DeviceTensor weight = floats(random.normal(2048), {2048});
  std::vector<uint8_t> first;
  for (int run = 0; run < 20; ++run) {
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    operations().rms_norm(out, x, weight, kNormEpsilon);
    const auto bytes = bytes_of(backend(), out);
    if (run == 0) first = bytes;
    ASSERT_EQ(bytes, first) << "run " << run;
  }
}

FOR_EACH_BACKEND(RmsNormTest);
FOR_EACH_VECTOR_LEVEL(RmsNormTest);

}  // namespace
}  // namespace tessera
