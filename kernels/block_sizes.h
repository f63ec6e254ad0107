// The sizes of a decoder's blocks; what they compute is a BlockSpec.
#pragma once

#include <cmath>
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

// The factor of query . key: what the block says, or else 1 / sqrt(head_dim).
inline float attention_scale(const BlockSpec& block, int64_t head_dim) {
  return block.attention_scale > 0.0 ? static_cast<float>(block.attention_scale)
                                     : 1.0f / std::sqrt(static_cast<float>(head_dim));
}

}  // namespace tessera
