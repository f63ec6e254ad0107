// The gate of a SwiGLU feed-forward (Shazeer 2020).
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = silu(gate) * up, silu(x) = x / (1 + exp(-x)), gate_up = [gate | up]
//   out float32 [num_tokens, intermediate_size], gate_up float32 [num_tokens, 2 intermediate_size]
void silu_mul(const Tensor& out, const Tensor& gate_up, ThreadPool& pool);

}  // namespace tessera
