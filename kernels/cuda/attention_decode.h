// Attention of one new token per sequence, limited by how fast keys and values are read.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention_plan.h"

namespace tessera {

// The attention of launch_attention_prefill_sm80() for the batch's num_decodes leading sequences.
// With one split the result goes to `out`; with more, split s of sequence i and head h leaves in
// params.workspace, float32, row r = (i * num_heads + h) * num_splits + s:
//   its output row, normalised                at r * head_dim
//   log2 of its sum of 2^(scale_log2 * score)  at num_rows * head_dim + r
// for launch_attention_combine().
//
// One block of 4 warps per split, 16 query heads of one KV head, and sequence. The query heads fill
// one tensor-core tile. Each warp reads its own groups of 16 tokens through its own ring in shared
// memory, so no warp waits for another; they merge at the end, in order.
void launch_attention_decode(const Tensor& out, const AttentionParams& params,
                             const DecodeAttentionPlan& plan, cudaStream_t stream);

}  // namespace tessera
