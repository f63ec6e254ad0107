// The matrix product of a batch of decoding sequences on Hopper: up to 64 tokens, so the time is
// that of reading the weights.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/block_spec.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// RMSNorm but for its scale, which the product that reads it applies to its sums: a block of the
// product that makes it knows only some of a token's features.
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
  // What else to make of `out`, which is float32, if anything; size is out_features, a multiple of
  // tiles, which are shares of 32 features.
  SkinnyNormTarget norm = {};
  // If not empty, `out` is of the queries alone, [num_tokens, num_heads, head_dim]. No other option
  // but x_squares then.
  SkinnyRopeTarget rope = {};
};

//   num_tokens <= kSkinnyMaxTokens; in_features a multiple of 8, for 16-byte aligned rows
//   plan one of kSkinnyPlans, of kGatedSkinnyPlans when gated, of kRopeSkinnyPlans with rope
//
// A block per multiprocessor takes tiles of plan.tile_rows rows of the weights. A warp copies them
// into a deep ring in shared memory, from before the preceding kernel's end; another warp copies
// the same features of all tokens; a third computes RMSNorm's scales where x lacks them; a
// warpgroup multiplies, tokens being the 64 rows of a tensor-core tile and weights its columns, and
// applies the scales to its sums. Where tiles are few, plan.split blocks share one: a
// cluster, each with a part of in_features, that adds up its sums through shared memory, in order.
// Where a block has several tiles and the plan says so, it computes two side by side, for which the
// tokens come once: the ring has a step of the one, the same of the other, the next of the one.
// Every token has its own row: its result depends on no other token nor on their number.
void launch_linear_skinny_sm90(const SkinnyProduct& product, const SkinnyPlan& plan,
                               int num_multiprocessors, cudaStream_t stream);

}  // namespace tessera
