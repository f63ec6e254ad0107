// How far a result may lie from its double-precision reference. The rule of all kernel tests:
//
//   2 u(out) |value|                      rounding of the result to its own type, twice the bound
//   + (2 u(float32) sqrt(length) + relative) magnitude
//                                         rounding of a float32 sum of `length` terms whose
//                                         absolute values add up to `magnitude`; errors of single
//                                         additions are independent, hence the root
//   + the smallest results that may be flushed to zero
//
// where u is the unit roundoff. `relative` is for what an operation may round besides: it is stated
// where a test uses it.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/tensor/tensor.h"

namespace tessera {

// Results of an operation in double precision. magnitudes[i] is the sum of the absolute values of
// the terms that values[i] was summed from.
struct Reference {
  std::vector<double> values;
  std::vector<double> magnitudes;
};

struct ErrorBound {
  DType out = DType::kFloat32;
  int64_t length = 1;
  double relative = 0.0;
  double absolute = 0.0;  // of every element
};

// Half the distance from 1 to the next number: 2^-24, 2^-11, 2^-8.
double unit_roundoff(DType dtype);

// Fails the test when an element breaks the rule, is NaN, or when the sizes differ. The message
// names the worst element by its index in `shape`, with both values and the error allowed.
void expect_close(const std::vector<double>& actual, const Reference& reference, const Shape& shape,
                  const ErrorBound& bound);

// The other rule, which scales itself: fails the test when the largest error exceeds `factor` times
// that of `plain`, what a plain implementation with the same roundings gets from the same inputs,
// plus one rounding of the largest result to `dtype`, without which few elements could ask for too
// much. A sum whose terms cancel comes out far more exact than its magnitude allows above.
void expect_as_exact(const std::vector<double>& actual, const std::vector<double>& reference,
                     const std::vector<double>& plain, double factor, DType dtype,
                     const Shape& shape);

// Fails the test when an element differs at all; NaN never equals.
void expect_equal(const std::vector<double>& actual, const std::vector<double>& expected,
                  const Shape& shape);

}  // namespace tessera
