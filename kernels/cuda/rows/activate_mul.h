// The gate of gated feed-forward networks (Shazeer 2020).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/block_spec.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out = activation(gate) * up as in Operations::activate_mul, computed in float32
//   out bfloat16 or float16 [num_tokens, intermediate_size],
//   gate_up same type [num_tokens, 2 * intermediate_size], gate first
// One thread per vector of 8 elements (of 1 when intermediate_size is not a multiple of 8). A
// programmatic dependent launch: it starts while the kernel before it in the stream ends.
void launch_activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation,
                         cudaStream_t stream);

}  // namespace tessera
