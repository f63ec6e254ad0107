// Rotary position embedding of queries and keys, and the append to the KV pages.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/rope_params.h"

namespace tessera {

// With angle = position * rope_table[0][j], h = head_dim / 2 (Su et al. 2021), and cos and sin
// times rope_table[1][j]:
//   (x[j], x[j + h])  ->  (x[j] cos - x[j + h] sin, x[j + h] cos + x[j] sin)
// Queries are scaled as params.query_scaling says. Where rope_normalizes(), heads are normalised
// before, otherwise qkv is normalised already (qk_norm.h). head_dim is a multiple of 16. One block
// per token, which computes its angles once for all heads; a thread moves 8 elements of each half
// at a time. Angles are computed from early reads, while the kernel before it in the stream ends.
void launch_rope_store_kv(const RopeStoreKvParams& params, cudaStream_t stream);

// Whether launch_rope_store_kv() normalises heads by params.qk_norm: QkNorm::kPerHead of those of
// 16, 32, 64, 128, 256 or 512 elements.
bool rope_normalizes(const RopeStoreKvParams& params);

}  // namespace tessera
