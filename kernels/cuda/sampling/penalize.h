// Token penalties on logits.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/sampling_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// Applies PenaltyBatch (see its formula) to logits float32 [num_sequences, vocab_size] in place.
// One block per sequence, one thread per listed token; tokens are distinct, so no two threads meet.
void launch_penalize(const Tensor& logits, const PenaltyBatch& penalties, cudaStream_t stream);

// Takes it back by penalties.before.
void launch_restore_penalized(const Tensor& logits, const PenaltyBatch& penalties,
                              cudaStream_t stream);

}  // namespace tessera
