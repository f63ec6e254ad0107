// The matrix product of a batch of decoding sequences on Hopper: up to 64 tokens, so the time is
// that of reading the weights.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/linear_plan.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = x . weight^T, or out += x . weight^T when `accumulate`, summed in float32
//   out activation type or float32 [num_tokens, out_features]; float32 when accumulating
//   x [num_tokens, in_features], weight [out_features, in_features], both bfloat16 or both float16
//   num_tokens <= kSkinnyMaxTokens; in_features a multiple of 8, for 16-byte aligned rows
//   plan one of kSkinnyPlans; weight not written by the kernel just before, which may still run
//
// A block per multiprocessor takes tiles of plan.tile_rows rows of the weights. A warp copies them
// into a deep ring in shared memory, from before the preceding kernel's end; another warp copies
// the same features of all tokens; a warpgroup multiplies, tokens being the 64 rows of a
// tensor-core tile and weights its columns. Where tiles are few, plan.split blocks share one: a
// cluster, each with a part of in_features, that adds up its sums through shared memory, in order.
// Every token has its own row: its result depends on no other token nor on their number.
void launch_linear_skinny_sm90(const Tensor& out, const Tensor& x, const Tensor& weight,
                               bool accumulate, const SkinnyPlan& plan, int num_multiprocessors,
                               cudaStream_t stream);

}  // namespace tessera
