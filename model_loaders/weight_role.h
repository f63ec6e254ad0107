// What a weight of a decoder is for, whatever its family calls it.
#pragma once

#include <cstdint>

namespace tessera {

// Matrices whose products have the same input are one weight: queries, keys and values; gate and
// up. Sizes are fields of ModelConfig. Names of norms as in kernels/layer_weights.h.
enum class WeightRole : uint8_t {
  kEmbedTokens,               // [vocab_size, hidden_size]
  kInputLayernorm,            // [hidden_size]
  kQkvProj,                   // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  kQkvBias,                   // [(num_heads + 2 num_kv_heads) head_dim]
  kQkNorm,                    // of queries, of keys: [2 head_dim] for QkNorm::kPerHead, for the
                              // others [(num_heads + num_kv_heads) head_dim]
  kOProj,                     // [hidden_size, num_heads head_dim]
  kOBias,                     // [hidden_size]
  kPostAttentionLayernorm,    // [hidden_size]; of what attention adds
  kPreFeedforwardLayernorm,   // [hidden_size]
  kGateUpProj,                // [2 intermediate_size, hidden_size]: gate, up
  kGateUpBias,                // [2 intermediate_size]
  kDownProj,                  // [hidden_size, intermediate_size]
  kDownBias,                  // [hidden_size]
  kPostFeedforwardLayernorm,  // [hidden_size]; of what the feed-forward network adds
  kNorm,                      // [hidden_size]; of the last layer's output
  kLmHead,                    // [vocab_size, hidden_size]
};

}  // namespace tessera
