// Root-mean-square normalisation (Zhang & Sennrich 2019).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// out = x / sqrt(mean(x^2) + epsilon) * weight, every row by itself
//   out bfloat16 or float16 [num_tokens, hidden_size], x float32 same shape,
//   weight float32 [hidden_size]
// One block per token. Rows of a multiple of 4 elements move 16 bytes at a time. A programmatic
// dependent launch: it reads its weights while the kernel before it in the stream ends.
void launch_rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                     cudaStream_t stream);

// residual += multiplier * (parts[0] + parts[1]), then out = rms_norm(residual)
//   residual float32 [num_tokens, hidden_size], parts float32 [2, num_tokens, hidden_size]
void launch_add_rms_norm(const Tensor& out, const Tensor& residual, const Tensor& parts,
                         float multiplier, const Tensor& weight, float epsilon,
                         cudaStream_t stream);

// The same as launch_rms_norm but for the scale: out = x * weight, and the sum of a row's x^2 in
// squares[row][0], with zeros behind it.
//   squares float32 [num_tokens, num_parts]
void launch_rms_norm_unscaled(const Tensor& out, const Tensor& squares, const Tensor& x,
                              const Tensor& weight, cudaStream_t stream);

}  // namespace tessera
