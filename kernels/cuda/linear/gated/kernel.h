// The product of gate and up with its activation on Hopper, for more tokens than the skinny product
// takes. Memory bounds it up to about 200 tokens, tensor cores from there on.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/block_spec.h"
#include "kernels/cuda/linear/gated/plan.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = activation(x . gate^T) * (x . up^T), summed in float32 and rounded once
//   out activation type [num_tokens, intermediate_size], intermediate_size a multiple of 8
//   x [num_tokens, in_features], weight [2 * intermediate_size, in_features], [gate | up], all
//   bfloat16 or all float16; in_features a multiple of 8, for 16-byte aligned rows
//   plan one of kGatedPlans
//
// A block per multiprocessor takes tiles, in pairs with a neighbour (PairShares). One thread copies
// the tile's tokens and weights, 64 features of the input at a time, into a ring in shared memory;
// weights before the preceding kernel's end. Two warpgroups multiply 64 tokens each by the tile's
// rows of gate and of up at once, so that a thread has both sums of each of its results: neither is
// stored and read again. A result's sum has the same order whatever the number of tokens and the
// plan.
void launch_linear_gated_sm90(const Tensor& out, const Tensor& x, const Tensor& weight,
                              Activation activation, const GatedPlan& plan, int num_multiprocessors,
                              cudaStream_t stream);

}  // namespace tessera
