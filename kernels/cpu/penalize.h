// Token penalties on logits; kernels/sampling_params.h defines them.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/sampling_params.h"

namespace tessera {

void penalize(const Tensor& logits, const PenaltyBatch& penalties, ThreadPool& pool);

void restore_penalized(const Tensor& logits, const PenaltyBatch& penalties, ThreadPool& pool);

}  // namespace tessera
