// The choice of a token from logits.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/sampling_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// tokens[s] = a draw from logits[s] by SamplingBatch, or kNonFiniteLogits
//   tokens int32 [num_sequences], logits float32 [num_sequences, vocab_size], any alignment
// A cluster of 8 blocks of 1024 threads per sequence, or one block where has_clusters is false. A
// cluster reads its row once and keeps it in shared memory. That is all a greedy choice needs, and
// nearly all where few tokens can be drawn (sampling/few_candidates.cuh); otherwise it passes over
// the row three times for the draw and three times more for each of top_k and top_p. All sums are
// of integers, so the result depends neither on the order in which threads add nor on the number of
// blocks.
void launch_sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
                   bool has_clusters, cudaStream_t stream);

}  // namespace tessera
