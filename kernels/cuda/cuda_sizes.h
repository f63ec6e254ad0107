// In which sizes a model is computed on a GPU. Plain arithmetic, tested without a GPU.
#pragma once

#include <cstdint>

#include "kernels/cuda/decode_step/make_plan.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/cuda/device/head_dims.h"
#include "kernels/model_shape.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

// Features of a row of weights or activations are a multiple of this: products read 16 bytes at a
// time.
inline constexpr int64_t kFeatureMultiple = 8;

// How much larger the weights of a layer may become so that a decode step is one kernel. With 1.42
// times as many SmolLM2 135M decodes 2.4 times as fast or more, with 1.16 Qwen2.5 0.5B 2.2 times;
// prompts take up to a fifth longer (docs/experiments/decode-step.md).
inline constexpr double kMostGrowth = 1.5;

inline int64_t rounded_up(int64_t size, int64_t multiple) {
  return ceil_divide(size, multiple) * multiple;
}

// What the plan of a decode step in one kernel is made for.
inline FusedDecodeShape fused_decode_shape(const BlockSizes& sizes, int64_t vocab_size,
                                           int64_t page_size, DType pages, bool is_bfloat16,
                                           const GpuTraits& gpu) {
  return {.hidden_size = sizes.hidden_size,
          .intermediate_size = sizes.intermediate_size,
          .vocab_size = vocab_size,
          .num_heads = sizes.num_heads,
          .num_kv_heads = sizes.num_kv_heads,
          .head_dim = sizes.head_dim,
          .page_size = page_size,
          .is_bfloat16 = is_bfloat16,
          .pages = pages,
          .weights = WeightFormat::kDense,
          .gpu = gpu};
}

inline bool has_one_kernel(const ModelShape& shape, const BlockSizes& sizes, const GpuTraits& gpu,
                           bool is_bfloat16) {
  const bool is_fp8 = shape.kv_dtype == KvDType::kFloat8E4M3;
  const DType pages = is_fp8 ? DType::kFloat8E4M3 : DType::kBFloat16;
  return plan_fused_decode(shape.block, fused_decode_shape(sizes, shape.vocab_size, shape.page_size,
                                                           pages, is_bfloat16, gpu))
      .runs();
}

inline int64_t layer_weights(const BlockSizes& sizes) {
  return sizes.hidden_size * (sizes.qkv_size() + sizes.query_size() + 3 * sizes.intermediate_size);
}

// The next sizes of which the kernel of a decode step may take all.
inline BlockSizes sizes_of_one_kernel(BlockSizes sizes) {
  sizes.hidden_size = rounded_up(sizes.hidden_size, kUnitFeatures);
  sizes.intermediate_size = rounded_up(sizes.intermediate_size, kUnitFeatures);
  while (sizes.query_size() % kUnitFeatures != 0) sizes.num_heads += sizes.num_kv_heads;
  return sizes;
}

// The sizes themselves where there are kernels for them, else the next ones for which there are.
// Where steps have few sequences, the next ones for which a decode step is one kernel, unless they
// are far larger. Throws Error for heads that are too large.
inline BlockSizes cuda_sizes(const ModelShape& shape, const GpuTraits& gpu, bool is_bfloat16) {
  BlockSizes sizes = shape.sizes;
  sizes.head_dim = kernel_head_dim(sizes.head_dim, shape.kv_dtype == KvDType::kFloat8E4M3);
  sizes.intermediate_size = rounded_up(sizes.intermediate_size, kFeatureMultiple);
  if (shape.block.norm == NormKind::kRmsNorm) {
    sizes.hidden_size = rounded_up(sizes.hidden_size, kFeatureMultiple);
  }
  const bool has_few_sequences = shape.max_sequences >= 1 && shape.max_sequences <= kFusedMaxTokens;
  if (!has_few_sequences || has_one_kernel(shape, sizes, gpu, is_bfloat16)) return sizes;
  const BlockSizes larger = sizes_of_one_kernel(sizes);
  const double growth =
      static_cast<double>(layer_weights(larger)) / static_cast<double>(layer_weights(shape.sizes));
  const bool pays = growth <= kMostGrowth && has_one_kernel(shape, larger, gpu, is_bfloat16);
  return pays ? larger : sizes;
}

}  // namespace tessera
