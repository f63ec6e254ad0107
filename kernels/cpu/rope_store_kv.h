// Rotary position embedding (Su et al. 2021) and the writing of keys and values to their pages.
#pragma once

#include "kernels/attention_params.h"
#include "kernels/cpu/rotation_table.h"
#include "kernels/cpu/thread_pool.h"

namespace tessera {

// Rotates the pair (j, j + head_dim / 2) of every query and key head by
// position * inverse_frequencies[j]; values are copied.
//   query float32 [num_tokens, num_heads, head_dim]
//   qkv float32 [num_tokens, (num_heads + 2 num_kv_heads) head_dim], order q, k, v
//   positions, kv_slots int32 [num_tokens]; inverse_frequencies float32 [head_dim / 2]
void rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                   const Tensor& positions, const Tensor& kv_slots,
                   const Tensor& inverse_frequencies, RotationTable& table, ThreadPool& pool);

}  // namespace tessera
