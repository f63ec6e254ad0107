// Operations that turn each element by itself into another.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// Both are programmatic dependent launches that read nothing early.

// out = x, rounded to nearest even
//   out bfloat16 or float16, x float32 of the same shape
void launch_cast(const Tensor& out, const Tensor& x, cudaStream_t stream);

// logits = cap * tanh(logits / cap), in place; float32
void launch_softcap(const Tensor& logits, float cap, cudaStream_t stream);

}  // namespace tessera
