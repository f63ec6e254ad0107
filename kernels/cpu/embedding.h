// Picked by index: token embeddings, the rows whose logits are wanted, and tokens drawn before.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// out[i] = multiplier * table[rows[i]], widened to float32; table[0] where rows[i] < 0
//   out float32 [num_rows, hidden_size], table of any float type [any, hidden_size],
//   rows int32 [num_rows]
void gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows, float multiplier,
                 ThreadPool& pool);

// ids[i] = drawn[from[i]] where from[i] >= 0
//   all int32; ids and from [num_ids]
void take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn);

}  // namespace tessera
