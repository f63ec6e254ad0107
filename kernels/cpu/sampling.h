// The draw of the next token; kernels/sampling_params.h defines it.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/thread_scratch.h"
#include "kernels/sampling_params.h"

namespace tessera {

void sample(const Tensor& tokens, const Tensor& logits, const SamplingBatch& sampling,
            ThreadScratch& scratch, ThreadPool& pool);

}  // namespace tessera
