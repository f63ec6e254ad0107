// The tensors of one layer of a decoder, as whoever computes it takes them.
#pragma once

#include "kernels/tensor/tensor.h"
#include "kernels/weight_matrix.h"

namespace tessera {

// Names of norms are those of Gemma 2, which has all four; Llama calls pre_feedforward_layernorm
// post_attention_layernorm. Matrices that are multiplied with the same input are one matrix, their
// rows below each other. Vectors are float32. A tensor that the model does not have is empty.
struct LayerWeights {
  Tensor input_layernorm;  // [hidden_size]
  WeightMatrix qkv_proj;   // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  Tensor qk_norm;          // of queries, of keys: [2 head_dim] for QkNorm::kPerHead, for the others
                           // [(num_heads + num_kv_heads) head_dim]
  WeightMatrix o_proj;     // [hidden_size, num_heads head_dim]
  Tensor post_attention_layernorm;    // [hidden_size]: of what attention adds
  Tensor pre_feedforward_layernorm;   // [hidden_size]
  WeightMatrix gate_up_proj;          // [2 intermediate_size, hidden_size]: gate, up
  WeightMatrix down_proj;             // [hidden_size, intermediate_size]
  Tensor post_feedforward_layernorm;  // [hidden_size]: of what the feed-forward network adds
};

}  // namespace tessera
