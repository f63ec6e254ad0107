// Rotary position embedding of queries and keys, and the append to the KV pages.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// With angle = position * inverse_frequencies[j] and h = head_dim / 2 (Su et al. 2021):
//   (x[j], x[j + h])  ->  (x[j] cos - x[j + h] sin, x[j + h] cos + x[j] sin)
// Shapes as in Operations::rope_store_kv; head_dim is a multiple of 16. One block per token, which
// computes its angles once for all heads; a thread moves 8 elements of each half at a time. Angles
// are computed from early reads, while the kernel before it in the stream ends.
void launch_rope_store_kv(const Tensor& query, const KvPages& pages, const Tensor& qkv,
                          const Tensor& positions, const Tensor& kv_slots,
                          const Tensor& inverse_frequencies, cudaStream_t stream);

}  // namespace tessera
