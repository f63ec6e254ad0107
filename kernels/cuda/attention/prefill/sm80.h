// Prefill attention for every GPU since Ampere, and the reference for kernels of newer ones.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"

namespace tessera {

// out[t, h] = softmax(scale * Q[t, h] . K^T) . V for the sequences that are not decodes, over paged
// keys and values of KV head h / (num_heads / num_kv_heads), with the softcap and the masks of
// AttentionParams; zeros where a query sees no key. FlashAttention-2 (Dao 2023).
//   out, params.query bfloat16 or float16 [num_tokens, num_heads, head_dim]
//   head_dim one of dispatch_head_dim(); page_size a multiple of 16
// One block of 4 warps per head, sequence and tile of 128 queries; tiles of 64 keys, the next one
// copied while one is computed; half of both for head_dim 256. The tiles with the longest contexts
// start first. Needs 96 KiB of shared memory per block at most, as every GPU since sm_80 has.
void launch_attention_prefill_sm80(const Tensor& out, const AttentionParams& params,
                                   cudaStream_t stream);

}  // namespace tessera
