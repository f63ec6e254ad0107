// The activation of a gated feed-forward network, by its name.
#pragma once

#include "kernels/block_spec.h"
#include "kernels/cuda/primitives/gelu.cuh"
#include "kernels/cuda/primitives/silu.cuh"

namespace tessera {

template <Activation kActivation>
__device__ inline float activate(float x) {
  static_assert(kActivation == Activation::kSilu || kActivation == Activation::kGeluTanh);
  if constexpr (kActivation == Activation::kGeluTanh) return gelu_tanh(x);
  return silu(x);
}

}  // namespace tessera
