// Pages of float8_e4m3 as pages of 16 bits.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"

namespace tessera {

struct WidenPages {
  KvPages source;              // float8_e4m3
  int64_t first_kv_head = 0;   // of as many as `pages` have
  int64_t sliding_window = 0;  // pages before what a query sees are left out; 0: none is
  Tensor query_starts;         // int32 [num_sequences + 1]
  Tensor context_lengths;      // int32 [num_sequences]
  Tensor block_tables;         // int32 [num_sequences, any], of `source`
  KvPages pages;               // out: 16 bits [num_sequences * pages_per_sequence, heads, ...]
  Tensor widened_tables;       // out: int32 [num_sequences, pages_per_sequence], of `pages`
};

// pages = scale * element, exactly: scales are powers of two. Pages past a context's end, and what
// their table's entries say, are unspecified.
void launch_widen_pages(const WidenPages& widen, cudaStream_t stream);

}  // namespace tessera
