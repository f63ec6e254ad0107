// The gated activation of SwiGLU feed-forward blocks (Shazeer 2020).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// out = gate / (1 + exp(-gate)) * up, computed in float32
//   out bfloat16 or float16 [num_tokens, intermediate_size],
//   gate_up same type [num_tokens, 2 * intermediate_size], gate first
// One thread per vector of 8 elements (of 1 when intermediate_size is not a multiple of 8). A
// programmatic dependent launch: it starts while the kernel before it in the stream ends.
void launch_silu_mul(const Tensor& out, const Tensor& gate_up, cudaStream_t stream);

}  // namespace tessera
