// The softmax of materialised attention; see kernels/standard_attention.h.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/standard_attention.h"

namespace tessera {

// Every row of scores [num_sequences, num_heads, query_length, context_length], in place:
//   scores = softmax(cap(scale * scores)) over the keys that the row's query sees, 0 elsewhere
// of params.query's type, computed in float32; context_length a multiple of 8
// One block per row. A row is read twice, the second time from the L2 cache, and written once.
void launch_masked_softmax(const Tensor& scores, const StandardAttentionParams& params,
                           cudaStream_t stream);

}  // namespace tessera
