// GELU (Hendrycks & Gimpel 2016) by its approximation with tanh.
#pragma once

namespace tessera {

// x / 2 * (1 + tanh(y)) with y = sqrt(2 / pi) (x + 0.044715 x^3), which is x / (1 + exp(-2 y)):
// computed as silu() is, with the power kept below 1. y has the sign of x.
__device__ inline float gelu_tanh(float x) {
  constexpr float kTwiceRootOf2OverPi = 1.5957691216f;
  const float factor = kTwiceRootOf2OverPi + kTwiceRootOf2OverPi * 0.044715f * (x * x);
  const float power = __expf(-fabsf(x * factor));
  return __fdividef(x < 0.0f ? x * power : x, 1.0f + power);
}

}  // namespace tessera
