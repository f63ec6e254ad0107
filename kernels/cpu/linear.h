// Matrix products with a weight matrix, in three ways: for few tokens memory is the limit and the
// weights are streamed once; for many, arithmetic is, and oneDNN does it, with bfloat16 weights by
// the processor's matrix unit where it has one (split_linear.h), else in float32 vectors.
#pragma once

#include "kernels/cpu/linear_epilogue.h"
#include "kernels/cpu/split_linear.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// Up to this many tokens streaming is the faster way. Measured on a Zen 5 core for 2048 -> 8192:
// the ways meet at 60 tokens for bfloat16 weights and at 20 for float16, which cost more to widen.
inline constexpr int64_t kMaxStreamedTokens = 16;

// The product x . weight^T, of which `epilogue` makes out.
//   out float32 [num_tokens, out_features], x float32 [num_tokens, in_features],
//   weight of any float type [out_features, in_features]
// With `is_batch_invariant`, weights are streamed for any number of tokens.
void linear(const Tensor& out, const Tensor& x, const Tensor& weight,
            const LinearEpilogue& epilogue, bool is_batch_invariant, SplitLinear& split_linear,
            ThreadScratch& scratch, ThreadPool& pool);

// Reads every weight from memory once. A token's results are the same bit by bit whichever tokens
// it is computed with, and on any number of threads.
void stream_linear(const Tensor& out, const Tensor& x, const Tensor& weight,
                   const LinearEpilogue& epilogue, ThreadPool& pool);

// Widens some rows of weights at a time to float32 and multiplies them by oneDNN, which runs within
// each thread of the pool. Results are the same bit by bit on any number of threads.
void panel_linear(const Tensor& out, const Tensor& x, const Tensor& weight,
                  const LinearEpilogue& epilogue, ThreadScratch& scratch, ThreadPool& pool);

}  // namespace tessera
