// Which blocks the fused products of CUDA (kernels/cuda/cuda_fused_operations.h) compute. Plain
// arithmetic, tested without a GPU.
#pragma once

#include <string>

#include "kernels/block_fields.h"

namespace tessera {

// The field of `block` that the products do not compute; empty when they compute all of it.
// Attention is not among them, nor are embeddings and logits; the RoPE table is an argument. A
// product that does not do what the block wants beside it leaves that to the operations.
inline std::string fused_products_block_problem(const BlockSpec& block) {
  BlockSpec computed;
  if (block.norm_placement == NormPlacement::kPreAndPost) {
    computed.norm_placement = block.norm_placement;
  }
  computed.is_parallel = block.is_parallel;
  // Who has LayerNorm of heads has LayerNorm before the products too.
  if (block.qk_norm != QkNorm::kLayerNormPerHead) computed.qk_norm = block.qk_norm;
  computed.biases = block.biases;
  computed.activation = block.activation;
  computed.attention_scale = block.attention_scale;
  computed.attention_softcap = block.attention_softcap;
  computed.query_scaling = block.query_scaling;
  computed.embedding_multiplier = block.embedding_multiplier;
  computed.residual_multiplier = block.residual_multiplier;
  computed.logit_softcap = block.logit_softcap;
  computed.layers = block.layers;
  return first_difference(block, computed);
}

}  // namespace tessera
