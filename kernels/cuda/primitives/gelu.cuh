// GELU (Hendrycks & Gimpel 2016) by its approximation with tanh.
#pragma once

#include "kernels/cuda/primitives/activation.cuh"

namespace tessera {

// x / 2 * (1 + tanh(y)) with y = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + exp(-2 y)):
// computed as silu() is, with the power kept below 1. y has the sign of x.
__device__ inline float gelu_tanh(float x) {
  constexpr ActivationFactors kFactors = kGeluTanhFactors;
  const float power = __expf(-fabsf(x * (kFactors.linear + kFactors.cubic * (x * x))));
  return __fdividef(x < 0.0f ? x * power : x, 1.0f + power);
}

}  // namespace tessera
