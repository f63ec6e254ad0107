// What a weight of a decoder is for, whatever its family calls it.
#pragma once

#include <cstdint>

namespace tessera {

// Matrices whose products have the same input are one weight: queries, keys and values; gate and
// up. Sizes are fields of ModelConfig.
enum class WeightRole : uint8_t {
  kEmbedTokens,             // [vocab_size, hidden_size]
  kInputLayernorm,          // [hidden_size]
  kQkvProj,                 // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  kQkNorm,                  // [2 head_dim]: of queries, of keys
  kOProj,                   // [hidden_size, num_heads head_dim]
  kPostAttentionLayernorm,  // [hidden_size]
  kGateUpProj,              // [2 intermediate_size, hidden_size]: gate, up
  kDownProj,                // [hidden_size, intermediate_size]
  kNorm,                    // [hidden_size]; of the last layer's output
  kLmHead,                  // [vocab_size, hidden_size]
};

}  // namespace tessera
