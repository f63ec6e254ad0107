#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class ActivateMulTest : public BackendTest {
 protected:
  void check(const std::vector<double>& gate_up, int64_t intermediate_size) const {
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      SCOPED_TRACE(activation == Activation::kSilu ? "SiLU" : "GELU");
      check(gate_up, intermediate_size, activation);
    }
  }

 private:
  void check(const std::vector<double>& gate_up, int64_t intermediate_size,
             Activation function) const {
    const Shape shape{static_cast<int64_t>(gate_up.size()) / (2 * intermediate_size),
                      intermediate_size};
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    operations().activate_mul(out, activations(gate_up, {shape[0], 2 * intermediate_size}),
                              function);
    // exp(x) is wrong by |x| roundings of its argument, of which GELU's has had four. There |x| is
    // below 88, or exp(x) vanishes.
    double largest = 1.0;
    for (const double value : gate_up) largest = std::max(largest, std::abs(value));
    if (function == Activation::kGeluTanh) largest = 4.0 * 88.0;
    expect_close(host(out), reference_activate_mul(gate_up, intermediate_size, function), shape,
                 {.out = activation(),
                  .length = 16,
                  .relative = 2.0 * unit_roundoff(DType::kFloat32) * largest});
  }
};

TEST_P(ActivateMulTest, MatchesReference) {
  RandomValues random(1);
  for (const int64_t intermediate_size : {1, 7, 64, 131, 1000, 5632}) {
    for (const int64_t num_tokens : {1, 3, 17, 33, 129}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " x " << intermediate_size);
      check(rounded(random.normal(2 * num_tokens * intermediate_size, 3.0), activation()),
            intermediate_size);
    }
  }
}

TEST_P(ActivateMulTest, SaturatesWithoutNan) {
  std::vector<double> gate_up;
  const std::vector<double> gates = {-60000.0, -500.0, -89.0, -88.0, -20.0, -0.0,
                                     0.0,      1e-6,   20.0,  89.0,  500.0, 60000.0};
  gate_up.insert(gate_up.end(), gates.begin(), gates.end());
  gate_up.insert(gate_up.end(), gates.size(), 1.0);
  check(rounded(gate_up, activation()), static_cast<int64_t>(gates.size()));
}

FOR_EACH_BACKEND(ActivateMulTest);
FOR_EACH_VECTOR_LEVEL(ActivateMulTest);

}  // namespace
}  // namespace tessera
