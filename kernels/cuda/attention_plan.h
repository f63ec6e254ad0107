// How decode attention divides contexts over thread blocks. Plain arithmetic, no CUDA.
//
// One query token per sequence leaves few blocks, num_sequences * num_kv_heads, far fewer than the
// GPU can run. So each context is cut into splits of equal length that are computed by different
// blocks and merged afterwards ("split-KV", "Flash-Decoding").
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/tensor/checked_math.h"

namespace tessera {

struct DecodeAttentionShape {
  int64_t num_sequences = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t max_context_length = 0;  // tokens; with a sliding window, what it leaves visible
  int64_t num_multiprocessors = 0;
};

struct DecodeAttentionPlan {
  static constexpr int64_t kTileTokens = 64;  // what a block reads at a time
  static constexpr int64_t kTileHeads = 16;   // query heads of one KV head a block computes at once
  static constexpr int64_t kBlocksPerMultiprocessor = 2;  // that run at the same time

  int64_t num_splits = 1;    // of the longest context; shorter ones use fewer
  int64_t split_tokens = 0;  // a multiple of kTileTokens
};

// Blocks per sequence and split.
inline int64_t decode_head_tiles(const DecodeAttentionShape& shape) {
  return shape.num_kv_heads *
         ceil_divide(shape.num_heads / shape.num_kv_heads, DecodeAttentionPlan::kTileHeads);
}

// No plan has more blocks than this, unless it has one split: it bounds the partial results.
inline int64_t max_split_blocks(int64_t num_multiprocessors) {
  return 4 * DecodeAttentionPlan::kBlocksPerMultiprocessor * num_multiprocessors;
}

// The number of splits with the least estimated time, the smaller one among equals. Time is
// counted in tiles: full waves of blocks, each as long as its tiles plus a start-up of
// kBlockOverhead, plus kMergeOverhead when there is anything to merge.
inline DecodeAttentionPlan plan_decode_attention(const DecodeAttentionShape& shape) {
  constexpr int64_t kBlockOverhead = 2;
  constexpr int64_t kMergeOverhead = 2;
  using Plan = DecodeAttentionPlan;
  const int64_t blocks = shape.num_sequences * decode_head_tiles(shape);
  const int64_t slots = Plan::kBlocksPerMultiprocessor * shape.num_multiprocessors;
  const int64_t tiles =
      std::max<int64_t>(1, ceil_divide(shape.max_context_length, Plan::kTileTokens));
  const int64_t max_splits =
      std::clamp<int64_t>(max_split_blocks(shape.num_multiprocessors) / blocks, 1, tiles);

  int64_t best_split_tiles = tiles;
  int64_t best_time = ceil_divide(blocks, slots) * (tiles + kBlockOverhead);
  for (int64_t splits = 2; splits <= max_splits; ++splits) {
    const int64_t split_tiles = ceil_divide(tiles, splits);
    const int64_t waves = ceil_divide(blocks * ceil_divide(tiles, split_tiles), slots);
    const int64_t time = waves * (split_tiles + kBlockOverhead) + kMergeOverhead;
    if (time < best_time) {
      best_time = time;
      best_split_tiles = split_tiles;
    }
  }
  return {.num_splits = ceil_divide(tiles, best_split_tiles),
          .split_tokens = best_split_tiles * Plan::kTileTokens};
}

// Partial results, float32: for every (sequence, head, split) an output row and its log-sum-exp.
inline int64_t partial_elements(int64_t num_rows, int64_t head_dim) {
  return num_rows * (head_dim + 1);
}

// The most float32 elements that any plan for these heads needs, whatever the batch and contexts.
inline int64_t max_partial_elements(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim,
                                    int64_t num_multiprocessors) {
  // rows = num_sequences * num_heads * splits, and splits * num_sequences * head_tiles is bounded.
  const int64_t head_tiles =
      decode_head_tiles({.num_heads = num_heads, .num_kv_heads = num_kv_heads});
  return partial_elements(
      num_heads * ceil_divide(max_split_blocks(num_multiprocessors), head_tiles), head_dim);
}

}  // namespace tessera
