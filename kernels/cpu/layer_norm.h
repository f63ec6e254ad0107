// Normalisation by mean and variance (Ba et al. 2016).
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight; each of `size` elements, out may be x
void layer_norm_row(float* out, const float* x, const float* weight, int64_t size, float epsilon);

// The same for every row by itself.
//   out, x float32 [num_tokens, hidden_size]; weight float32 [hidden_size]
void layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                ThreadPool& pool);

}  // namespace tessera
