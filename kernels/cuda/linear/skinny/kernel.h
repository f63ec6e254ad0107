// The matrix product of a batch of decoding sequences on Hopper: up to 64 tokens, so the time is
// that of reading the weights.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/block_spec.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// RMSNorm without its scale. A block of the product that makes these values knows only some of a
// token's features, so the product that reads them applies the scale to its sums.
struct SkinnyNormTarget {
  Tensor values;   // activation [num_tokens, size], weight * x
  Tensor squares;  // float32 [num_tokens, size / 32], sums of x^2 over 32 features each
  Tensor weight;   // float32 [size]
};

// The product is queries, keys and values, which go where Operations::rope_store_kv puts them. Each
// is rounded once, after its rotation.
struct SkinnyRopeTarget {
  KvPages pages;      // head_dim 64 or 128
  Tensor positions;   // int32 [num_tokens]
  Tensor kv_slots;    // int32 [num_tokens]
  Tensor rope_table;  // float32 [2, head_dim / 2]
  Tensor bias = {};   // float32 [rows of the weights], added before the rotation; empty: none
};

// out = x . weight^T, or out += multiplier * x . weight^T when `accumulate`, summed in float32
struct SkinnyProduct {
  Tensor out;     // activation or float32 [num_tokens, out_features]; float32 when accumulating
  Tensor x;       // [num_tokens, in_features]
  Tensor weight;  // [out_features, in_features], bfloat16 or float16, as x
  bool accumulate = false;
  float multiplier = 1.0f;  // other than 1 only when accumulating
  // weight has 2 * out_features rows instead, [gate | up], and out = activation(gate) * up, of the
  // activations' type.
  bool is_gated = false;
  Activation activation = Activation::kSilu;
  // Where x lacks RMSNorm's scale, SkinnyNormTarget's squares [num_tokens, a multiple of 4].
  Tensor x_squares = {};
  float epsilon = 0.0f;
  // If not empty, what else to make of `out`, which is then float32. `size` is out_features, a
  // multiple of a tile's rows; each block's share of these is a multiple of 32.
  SkinnyNormTarget norm = {};
  // If not empty, `out` holds the queries alone, [num_tokens, num_heads, head_dim]. No other option
  // but x_squares is allowed then.
  SkinnyRopeTarget rope = {};
};

//   num_tokens <= kSkinnyMaxTokens; in_features a multiple of 8, for 16-byte aligned rows
//   plan one of kSkinnyPlans, of kGatedSkinnyPlans when gated, of kRopeSkinnyPlans with rope
//
// A block per multiprocessor takes tiles of plan.tile_rows rows of the weights. One warp copies
// them into a deep ring in shared memory, beginning before the preceding kernel's end; another warp
// copies the same features of all tokens; a third computes RMSNorm's scales where x lacks them. A
// warpgroup multiplies, with tokens as the 64 rows of a tensor-core tile and weights as its
// columns, and applies the scales to its sums. Where tiles are few, a cluster of plan.split blocks
// shares one: each block multiplies a part of in_features, and they add up their sums through
// shared memory, in order. Where a block has several tiles and the plan says so, it computes two
// side by side, for which the tokens are copied once: the ring holds a step of the first tile, the
// same step of the second, then the next step of the first. Every token has its own row: its result
// depends on no other token nor on their number.
void launch_linear_skinny_sm90(const SkinnyProduct& product, const SkinnyPlan& plan,
                               int num_multiprocessors, cudaStream_t stream);

}  // namespace tessera
