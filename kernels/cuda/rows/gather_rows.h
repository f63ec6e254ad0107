// Rows picked by index: token embeddings, and what is needed of the tokens whose logits are wanted.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// out[i] = multiplier * table[rows[i]]; table[0] where rows[i] < 0
//   out float32 or of the table's type [num_rows, row_size], table float32, bfloat16 or float16
//   [any, row_size], rows int32 [num_rows]
// One block per row. Rows of a multiple of 8 elements move 16 bytes at a time.
void launch_gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows,
                        float multiplier, cudaStream_t stream);

}  // namespace tessera
