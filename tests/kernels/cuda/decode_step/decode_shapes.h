// Shapes and blocks of models, for tests of the plan of the fused decode kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/decode_step/make_plan.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {

inline constexpr FusedDecodeShape kLlama8B{.hidden_size = 4096,
                                           .intermediate_size = 14336,
                                           .vocab_size = 128256,
                                           .num_heads = 32,
                                           .num_kv_heads = 8,
                                           .head_dim = 128,
                                           .page_size = 64,
                                           .is_bfloat16 = true,
                                           .gpu = kH200};

inline FusedDecodeShape llama_1b() {
  FusedDecodeShape shape = kLlama8B;
  shape.hidden_size = 2048;
  shape.intermediate_size = 8192;
  shape.head_dim = 64;
  return shape;
}

inline FusedDecodeShape shape_of(int64_t hidden_size, int64_t intermediate_size, int64_t num_heads,
                                 int64_t num_kv_heads, int64_t head_dim) {
  FusedDecodeShape shape = kLlama8B;
  shape.hidden_size = hidden_size;
  shape.intermediate_size = intermediate_size;
  shape.num_heads = num_heads;
  shape.num_kv_heads = num_kv_heads;
  shape.head_dim = head_dim;
  return shape;
}

// Every other layer sees so many tokens.
inline BlockSpec gemma(size_t num_layers, int64_t sliding_window) {
  BlockSpec block{.layers = std::vector<LayerSpec>(num_layers)};
  for (size_t i = 0; i < num_layers; i += 2) block.layers[i].sliding_window = sliding_window;
  block.norm_placement = NormPlacement::kPreAndPost;
  block.activation = Activation::kGeluTanh;
  return block;
}

// Of a block of the kernel: dynamic and static shared memory of steps of so many tokens.
inline int64_t shared_bytes(const FusedDecodePlan& plan, int tokens, int64_t head_dim) {
  const FusedInstance instance = fused_instance(plan.block, plan.has_fp8_pages, head_dim);
  return fused_shared_memory(plan, tokens, head_dim, kLlama8B.gpu.shared_bytes).total_bytes +
         fused_static_bytes(instance, tokens, head_dim);
}

}  // namespace tessera
