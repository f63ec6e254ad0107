// Rotary position embedding (Su et al. 2021) and the writing of keys and values to their pages.
#pragma once

#include "kernels/cpu/rotation_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/rope_params.h"

namespace tessera {

// Normalises queries and keys where there is a qk_norm, then rotates the pair (j, j + head_dim / 2)
// of every query and key head by position * rope_table[0][j], times rope_table[1][j]; queries are
// scaled as query_scaling says, values are copied.
//   query float32 [num_tokens, num_heads, head_dim]
//   qkv float32 [num_tokens, (num_heads + 2 num_kv_heads) head_dim], order q, k, v
//   positions, kv_slots int32 [num_tokens]; rope_table float32 [2, head_dim / 2]
void rope_store_kv(const RopeStoreKvParams& params, RotationTable& table, ThreadPool& pool);

}  // namespace tessera
