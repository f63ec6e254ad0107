// The sizes of a decoder's blocks; what they compute is a BlockSpec.
#pragma once

#include <cstdint>

#include "kernels/block_spec.h"

namespace tessera {

struct BlockSizes {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  float rms_norm_eps = 0.0f;

  int64_t query_size() const { return num_heads * head_dim; }
  int64_t qkv_size() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

// Floating-point operations of one block: its matrix products with `num_tokens` rows, and attention
// over `num_scores` pairs of a query and a key in each head.
inline double block_flops(const BlockSizes& sizes, int64_t num_tokens, int64_t num_scores) {
  const int64_t weights =
      sizes.hidden_size * (sizes.qkv_size() + sizes.query_size() + 3 * sizes.intermediate_size);
  return 2.0 * static_cast<double>(weights) * static_cast<double>(num_tokens) +
         4.0 * static_cast<double>(sizes.query_size()) * static_cast<double>(num_scores);
}

}  // namespace tessera
