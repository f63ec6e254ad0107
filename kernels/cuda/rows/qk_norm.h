// Root-mean-square normalisation of each query and key head by itself.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace tessera {

// In place, as launch_rms_norm for rows of head_dim elements; values stay as they are.
//   qkv bfloat16 or float16 [num_tokens, (num_heads + 2 num_kv_heads) head_dim]: q, k, v
//   weights float32 [2 head_dim]: of every query head, of every key head
// One warp per head. A programmatic dependent launch that reads nothing early.
void launch_qk_norm(const Tensor& qkv, const Tensor& weights, int64_t num_heads, float epsilon,
                    cudaStream_t stream);

}  // namespace tessera
