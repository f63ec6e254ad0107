// The softcap of logits (Gemma 2).
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// logits = cap * tanh(logits / cap), in place
//   logits float32 [num_rows, vocab_size]
void softcap(const Tensor& logits, float cap, ThreadPool& pool);

}  // namespace tessera
