// Log-probabilities of the tokens drawn and of the most probable ones; kernels/sampling_params.h
// defines them.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/sampling_params.h"

namespace tessera {

void logprobs(const Tensor& logits, const LogprobBatch& batch, ThreadPool& pool);

}  // namespace tessera
