// The bias of matrix products that do not add it themselves.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// out[t] += multiplier * bias for every token, computed in float32
//   out float32, bfloat16 or float16 [num_tokens, out_features], bias float32 [out_features]
// One thread per vector of 8 elements (of 1 when out_features is not a multiple of 8). A
// programmatic dependent launch: it reads the bias while the kernel before it in the stream ends.
void launch_add_bias(const Tensor& out, const Tensor& bias, float multiplier, cudaStream_t stream);

}  // namespace tessera
