// The activations of gated feed-forward networks as one function, for kernels that compute either.
#pragma once

#include <cfloat>

namespace tessera {

// Of the power that stands for an activation: x / (1 + exp(-x (linear + cubic x^2))).
struct ActivationFactors {
  float linear;
  float cubic;
};

// SiLU as it is (silu.cuh), and GELU by its approximation with tanh, which has this form
// (gelu.cuh).
inline constexpr float kTwiceRootOf2OverPi = 1.5957691216f;
inline constexpr ActivationFactors kSiluFactors{.linear = 1.0f, .cubic = 0.0f};
inline constexpr ActivationFactors kGeluTanhFactors{.linear = kTwiceRootOf2OverPi,
                                                    .cubic = kTwiceRootOf2OverPi * 0.044715f};

// With the factors of SiLU the same bits as silu(): the power is kept below 1, and the square
// finite, so that no factor of zero meets an infinity.
__device__ inline float activate(float x, const ActivationFactors& factors) {
  const float factor = factors.linear + factors.cubic * fminf(x * x, FLT_MAX);
  const float power = __expf(-fabsf(x * factor));
  return __fdividef(x < 0.0f ? x * power : x, 1.0f + power);
}

}  // namespace tessera
