// Root-mean-square normalisation (Zhang & Sennrich 2019) of what is added to the residual stream.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// What to make of the residual stream for the product that reads it: RMSNorm but for its scale, as
// launch_rms_norm_unscaled() makes it.
struct NextNorm {
  Tensor values;   // bfloat16 [num_tokens, hidden_size]; empty: nothing
  Tensor squares;  // float32 [num_tokens, num_parts]
  Tensor weight;   // float32 [hidden_size]
};

// residual += multiplier * (x / sqrt(mean(x^2) + epsilon) * weight), every row by itself
//   residual, x float32 [num_tokens, hidden_size], weight float32 [hidden_size]
// One block per token. A programmatic dependent launch that reads nothing early.
void launch_rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight,
                         float epsilon, float multiplier, const NextNorm& next,
                         cudaStream_t stream);

}  // namespace tessera
