// Root-mean-square normalisation (Zhang & Sennrich 2019).
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = x / sqrt(mean(x^2) + epsilon) * weight; each of `size` elements, out may be x
void rms_norm_row(float* out, const float* x, const float* weight, int64_t size, float epsilon);

// The same for every row by itself.
//   out, x float32 [num_tokens, hidden_size]; weight float32 [hidden_size]
void rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
              ThreadPool& pool);

// residual += multiplier * rms_norm(x)
//   residual, x float32 [num_tokens, hidden_size]; weight float32 [hidden_size]
void rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
                  float multiplier, ThreadPool& pool);

}  // namespace tessera
