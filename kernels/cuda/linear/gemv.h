// The matrix product of decode: few tokens, so the time is that of reading the weights.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/weight_matrix.h"

namespace tessera {

// out = x . weight^T + bias, or out += multiplier * (x . weight^T + bias) when `accumulate`, summed
// in float32; the multiplier is 1 otherwise
//   out activation type or float32 [num_tokens, out_features]; float32 when accumulating
//   x [num_tokens, in_features], weight [out_features, in_features], both bfloat16 or both float16
//   num_tokens <= kGemvMaxTokens; in_features a multiple of 8, so that rows are 16-byte aligned
//
// One block of 8 warps per 16 rows of weight, which are the rows of tensor-core tiles whose 8
// columns are the tokens. The warps divide in_features; their sums are added in order of warp.
// Every token has its own column, so its result does not depend on the other tokens.
void launch_linear_gemv(const Tensor& out, const Tensor& x, const WeightMatrix& weight,
                        bool accumulate, float multiplier, cudaStream_t stream);

}  // namespace tessera
