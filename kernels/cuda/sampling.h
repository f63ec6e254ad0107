// The choice of a token from logits.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/sampling_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// tokens[s] = a draw from logits[s] by SamplingBatch, or kNonFiniteLogits
//   tokens int32 [num_sequences], logits float32 [num_sequences, vocab_size], any alignment
// One block of 1024 threads per sequence, which passes over its row once for a greedy choice, and
// otherwise twice more for the draw and three times more for each of top_k and top_p. All sums are
// of integers, so the result does not depend on the order in which threads add.
void launch_sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
                   cudaStream_t stream);

}  // namespace tessera
