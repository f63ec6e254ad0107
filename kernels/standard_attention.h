// Attention as its formula is written: all scores in memory, their softmax, a product with V.
//
// This is what tiled attention is measured against, and a comparator only: the engine cannot
// include this header (tests/check_dependencies.py), and no model runs through it.
#pragma once

#include "kernels/tensor/tensor.h"

namespace tessera {

struct StandardAttentionParams {
  Tensor query;   // activation dtype [num_sequences, num_heads, query_length, head_dim]
  Tensor keys;    // activation dtype [num_sequences, num_kv_heads, context_length, head_dim]
  Tensor values;  // same shape
  float scale = 0.0f;
  float softcap = 0.0f;        // 0: none
  bool causal = true;          // aligned at the end of the context
  int64_t sliding_window = 0;  // 0: none
  Tensor scratch;              // at least scratch_bytes(), float32
};

class StandardAttention {
 public:
  virtual ~StandardAttention() = default;
  StandardAttention(const StandardAttention&) = delete;
  StandardAttention& operator=(const StandardAttention&) = delete;

  // Bytes for the matrix of scores, which becomes the matrix of probabilities, and for the
  // workspace of the matrix library: the least that this way of computing needs.
  virtual size_t scratch_bytes(const StandardAttentionParams& params) const = 0;

  // out = softmax(scale * query . keys^T, masked) . values
  //   out activation dtype [num_sequences, num_heads, query_length, head_dim]
  // Only enqueues work, as every operation of the backend that made it. Throws Error for a
  // context_length or head_dim that is not a multiple of 8.
  virtual void run(const Tensor& out, const StandardAttentionParams& params) = 0;

 protected:
  StandardAttention() = default;
};

}  // namespace tessera
