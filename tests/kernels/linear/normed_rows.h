// PendingNorm in tests.
#pragma once

#include <cmath>
#include <vector>

#include "kernels/tensor/checked_math.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"
#include "tests/kernels/tolerance.h"

namespace tessera {

// The device tensors behind PendingNorm, poisoned.
struct PoisonedRows {
  DeviceTensor values;
  DeviceTensor squares;

  PoisonedRows(Backend& backend, int64_t num_tokens, int64_t hidden)
      : values(poisoned(backend, backend.operations().activation_dtype(), {num_tokens, hidden})),
        squares(
            poisoned(backend, DType::kFloat32,
                     {num_tokens, ceil_divide(hidden, int64_t{PendingNorm::kSquaresFeatures})})) {}
  PendingNorm view() const {
    return {.values = values, .squares = squares, .epsilon = kNormEpsilon};
  }
};

// Weights of a norm as models have them, around one, and some of them negative. Around zero a few
// features would make up most of a product, and their roundings would not add up like those of
// many.
inline std::vector<double> norm_weights(RandomValues& random, int64_t hidden) {
  auto weights = random.normal(hidden, 0.3);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] += i % 5 == 0 ? -1.0 : 1.0;
  return rounded(weights, DType::kFloat32);
}

// How far products of a norm may lie from those of its exact values: the norm is rounded to the
// activation type, whose errors add up like those of a sum of terms of similar size.
inline double norm_error(DType activation, int64_t hidden) {
  return 4.0 * unit_roundoff(activation) / std::sqrt(static_cast<double>(hidden)) +
         64.0 * unit_roundoff(DType::kFloat32);
}

}  // namespace tessera
