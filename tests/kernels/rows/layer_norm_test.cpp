#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class LayerNormTest : public BackendTest {
 protected:
  void check(const std::vector<double>& x, const std::vector<double>& weight) const {
    const auto hidden_size = static_cast<int64_t>(weight.size());
    const Shape shape{static_cast<int64_t>(x.size()) / hidden_size, hidden_size};
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    operations().layer_norm(out, floats(x, shape), floats(weight, {hidden_size}), kNormEpsilon);
    expect_close(host(out), reference_layer_norm(x, weight, kNormEpsilon), shape,
                 {.out = activation(), .length = hidden_size + kOtherRoundings});
  }

 private:
  // Mean, variance, epsilon, root, quotient, difference and product, counted generously.
  static constexpr int64_t kOtherRoundings = 64;
};

TEST_P(LayerNormTest, MatchesReference) {
  RandomValues random(1);
  for (const int64_t hidden_size : {2, 7, 64, 129, 512, 2048, 2051, 4096, 5000, 8192, 12004}) {
    const auto weight = rounded(random.normal(hidden_size), DType::kFloat32);
    for (const int64_t num_tokens : {1, 3, 17, 33, 129}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " x " << hidden_size);
      check(rounded(random.normal(num_tokens * hidden_size), DType::kFloat32), weight);
    }
  }
}

// Digits of a mean that is far from 0 must not cost those of the distances from it.
TEST_P(LayerNormTest, RowsMayLieFarFromZero) {
  constexpr int64_t kHiddenSize = 515;
  RandomValues random(2);
  const std::vector<double> weight(kHiddenSize, 1.0);
  for (const double mean : {0.0, 1.0, -1000.0}) {
    SCOPED_TRACE(testing::Message() << "mean " << mean);
    auto x = random.normal(3 * kHiddenSize);
    for (double& value : x) value += mean;
    check(rounded(x, DType::kFloat32), weight);
  }
}

TEST_P(LayerNormTest, HandlesTinyLargeAndEqualRows) {
  constexpr int64_t kHiddenSize = 512;
  RandomValues random(3);
  const std::vector<double> weight(kHiddenSize, 1.0);
  for (const double deviation : {0.0, 1e-12, 1e-3, 1e4, 1e15}) {
    SCOPED_TRACE(testing::Message() << "deviation " << deviation);
    check(rounded(random.normal(2 * kHiddenSize, deviation), DType::kFloat32), weight);
  }
}

FOR_EACH_BACKEND(LayerNormTest);
FOR_EACH_VECTOR_LEVEL(LayerNormTest);

}  // namespace
}  // namespace tessera
