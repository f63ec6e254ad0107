// The gate of a gated feed-forward network (Shazeer 2020).
#pragma once

#include "kernels/block_spec.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = activation(gate) * up, gate_up = [gate | up], as in Operations::activate_mul
//   out float32 [num_tokens, intermediate_size], gate_up float32 [num_tokens, 2 intermediate_size]
void activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation,
                  ThreadPool& pool);

}  // namespace tessera
