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
// at a time. Angles are computed from early reads, while the kernel before it in the stream ends;
// the bias is read then too.
//   bias float32 [(num_heads + 2 * num_kv_heads) * head_dim], added to qkv before all else, with
//   the rounding of add_bias.h, where rope_adds_bias(); or empty
void launch_rope_store_kv(const RopeStoreKvParams& params, const Tensor& bias, cudaStream_t stream);

// Whether launch_rope_store_kv() normalises heads by params.qk_norm: QkNorm::kPerHead of those of
// 16, 32, 64, 128, 256 or 512 elements.
bool rope_normalizes(const RopeStoreKvParams& params);

// Whether launch_rope_store_kv() takes a bias: not where a norm reads qkv before, nor where queries
// are scaled by their position, which no family with a bias does.
bool rope_adds_bias(const RopeStoreKvParams& params);

}  // namespace tessera
