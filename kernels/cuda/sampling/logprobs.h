// Log-probabilities of the tokens drawn and of the most probable ones.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/sampling_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// What LogprobBatch says of logits float32 [num_sequences, vocab_size]. A block of 1024 threads per
// sequence passes over its row twice; then each of the most probable tokens costs a reduction over
// the block, and the thread that had it another look at its part of the row. Only who asks for
// log-probabilities waits for them: they are not made to be fast.
void launch_logprobs(const Tensor& logits, const LogprobBatch& batch, cudaStream_t stream);

}  // namespace tessera
