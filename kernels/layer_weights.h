// The tensors of one layer of a decoder, as whoever computes it takes them.
#pragma once

#include "kernels/tensor/tensor.h"
#include "kernels/weight_matrix.h"

namespace tessera {

// Names are those of Hugging Face's checkpoints. Matrices whose products have the same input are
// one, their rows below each other. Vectors are float32. What a model has not is empty.
struct LayerWeights {
  Tensor input_layernorm;           // [hidden_size]
  WeightMatrix qkv_proj;            // [(num_heads + 2 num_kv_heads) head_dim, hidden_size]: q, k, v
  Tensor qk_norm;                   // [2 head_dim]: of queries, of keys
  WeightMatrix o_proj;              // [hidden_size, num_heads head_dim]
  Tensor post_attention_layernorm;  // [hidden_size]
  WeightMatrix gate_up_proj;        // [2 intermediate_size, hidden_size]: gate, up
  WeightMatrix down_proj;           // [hidden_size, intermediate_size]
};

}  // namespace tessera
