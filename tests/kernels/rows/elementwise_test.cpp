// Operations that turn each element by itself into another: cast() and softcap().
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class ElementwiseTest : public BackendTest {
 protected:
  void check_softcap(const std::vector<double>& logits, const Shape& shape, float cap) const {
    SCOPED_TRACE(testing::Message() << shape << ", cap " << cap);
    const DeviceTensor in_place = floats(logits, shape);
    operations().softcap(in_place, cap);
    // tanh may come from a difference of numbers near 1: its error is relative to the cap.
    Reference expected{{}, std::vector<double>(logits.size(), cap)};
    for (const double logit : logits) expected.values.push_back(cap * std::tanh(logit / cap));
    expect_close(host(in_place), expected, shape, {.length = 4});
  }
};

TEST_P(ElementwiseTest, CastRoundsToNearest) {
  RandomValues random(1);
  for (const Shape& shape : {Shape{1, 1}, Shape{3, 7}, Shape{17, 64}, Shape{5, 1001}}) {
    const auto values = rounded(random.normal(shape.num_elements(), 10.0), DType::kFloat32);
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    operations().cast(out, floats(values, shape));
    expect_equal(host(out), rounded(values, activation()), shape);
  }
}

TEST_P(ElementwiseTest, SoftcapMatchesReference) {
  RandomValues random(2);
  for (const Shape& shape : {Shape{1, 1}, Shape{1, 4097}, Shape{3, 131}, Shape{2, 32000}}) {
    for (const float cap : {1.0f, 30.0f, 50.0f}) {
      check_softcap(rounded(random.normal(shape.num_elements(), 20.0), DType::kFloat32), shape,
                    cap);
    }
  }
}

TEST_P(ElementwiseTest, SoftcapSaturatesWithoutNan) {
  check_softcap({-1e30, -5000.0, -300.0, -0.0, 0.0, 1e-20, 300.0, 5000.0, 1e30}, {1, 9}, 30.0f);
}

FOR_EACH_BACKEND(ElementwiseTest);
FOR_EACH_VECTOR_LEVEL(ElementwiseTest);

}  // namespace
}  // namespace tessera
