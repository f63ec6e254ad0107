// Normalisation by mean and variance (Ba et al. 2016).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight, every row by itself
//   out bfloat16 or float16 [num_tokens, hidden_size], x float32 same shape,
//   weight float32 [hidden_size]
// One block per token. A programmatic dependent launch that reads nothing early.
void launch_layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                       cudaStream_t stream);

}  // namespace tessera
