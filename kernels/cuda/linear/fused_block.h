// Which blocks the fused products of CUDA (kernels/cuda/cuda_fused_operations.h) compute. Plain
// arithmetic, tested without a GPU.
#pragma once

#include <string>

#include "kernels/block_fields.h"

namespace tessera {

// The field of `block` that the products do not compute; empty when they compute all of it.
// Attention is not among them, nor are embeddings and logits; the RoPE table is an argument.
inline std::string fused_products_block_problem(const BlockSpec& block) {
  BlockSpec computed;
  computed.attention_scale = block.attention_scale;
  computed.attention_softcap = block.attention_softcap;
  computed.embedding_multiplier = block.embedding_multiplier;
  computed.logit_softcap = block.logit_softcap;
  computed.layers = block.layers;
  return first_difference(block, computed);
}

}  // namespace tessera
