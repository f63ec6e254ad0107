// Rotary position embedding (Su et al. 2021) and the writing of keys and values to their pages.
#pragma once

#include "kernels/cpu/rotation_table.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/rope_params.h"

namespace tessera {

// Normalises every query and key head where there is a qk_norm, then rotates the pair (j, j +
// head_dim / 2) of every query and key head by position * inverse_frequencies[j]; values are
// copied.
//   query float32 [num_tokens, num_heads, head_dim]
//   qkv float32 [num_tokens, (num_heads + 2 num_kv_heads) head_dim], order q, k, v
//   positions, kv_slots int32 [num_tokens]; inverse_frequencies float32 [head_dim / 2]
void rope_store_kv(const RopeStoreKvParams& params, RotationTable& table, ThreadPool& pool);

}  // namespace tessera
