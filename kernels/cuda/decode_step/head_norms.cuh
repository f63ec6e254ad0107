// Norms of queries and keys in the fused decode kernel: of each head, or of all heads at once.
// Whoever finishes rows of queries and keys publishes the sum of squares of each item of kItemRows
// rows, before the rotation; attention adds them up and applies the scale, which commutes with the
// rotation.
#pragma once

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/decode_step/block.cuh"
#include "kernels/cuda/decode_step/exchange.cuh"
#include "kernels/cuda/decode_step/squares.cuh"

namespace tessera {

// RMSNorm's scale of a query or key head. Each of kLanes neighbouring lanes has the sum of squares
// of some of the head's elements, before these are multiplied by `scale`.
template <int kHeadDim, int kLanes>
__device__ float head_norm_scale(const FusedDecodeArguments& arguments, float squares,
                                 float scale) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    squares += __shfl_xor_sync(kFullWarp, squares, distance);
  }
  return rsqrtf(squares * scale * scale / kHeadDim + arguments.epsilon);
}

// The offset in a copy of the squares of a head's first item.
template <int kHeadDim>
__device__ int item_word(const FusedDecodeArguments& arguments, int token, int head) {
  return arguments.layout.qk_squares + token * (arguments.products[kQkv].rows / kItemRows) +
         head * (kHeadDim / kItemRows);
}

// Waits for the squares of a token's items, `count` words, and adds them up. Called by all lanes of
// a warp.
__device__ inline float wait_for_items(const uint32_t* words, int count) {
  constexpr int kAtOnce = 8;  // a lane's words, which it asks for together
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < count; first += kAtOnce * kWarpSize) {
    const auto item = [&](int i) { return first + i * kWarpSize + reread_lane_index(); };
    uint32_t squares[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) squares[i] = item(i) < count ? kMissing : 0;
    poll([&] {
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) load_if_missing(squares[i], words + item(i));
#pragma unroll
      for (const uint32_t word : squares) missing |= is_missing(word);
      return missing;
    });
#pragma unroll
    for (const uint32_t word : squares) sum += __uint_as_float(word);
  }
  return warp_sum(sum);
}

// RMSNorm's scale of num_heads heads of a token at once, from first_head on, before these are
// multiplied by `scale`. Waits for their squares. Called by all lanes of a warp.
template <int kHeadDim>
__device__ float wait_for_whole_norm_scale(const FusedDecodeArguments& arguments,
                                           const uint32_t* copy, int token, int first_head,
                                           int num_heads, float scale) {
  const float squares = wait_for_items(copy + item_word<kHeadDim>(arguments, token, first_head),
                                       num_heads * (kHeadDim / kItemRows));
  const auto num_elements = static_cast<float>(num_heads * kHeadDim);
  return rsqrtf(squares * scale * scale / num_elements + arguments.epsilon);
}

// The squares from which q/k norm's scales are computed, of the queries and of the newest key. A
// lane asks for those of some items of its query's head, and for those of one item of the key's
// head.
template <int kHeadDim>
struct HeadSquares {
  static constexpr int kItems = kHeadDim / kItemRows;
  static constexpr int kLaneItems = kItems / 4;  // four lanes have elements of a query
  uint32_t query[kLaneItems];
  uint32_t key;
  int query_word;  // offsets of these words in the copy
  int key_word;

  // For row `row` of the piece. Words that are not needed are 0: those of the key where the warp
  // has not the newest token, and all where nothing is normed by heads.
  template <FusedInstance kInstance>
  __device__ static HeadSquares of(const FusedDecodeArguments& arguments, const DecodePiece& piece,
                                   int row, bool has_newest, bool is_normed) {
    const AttentionArguments& attention = arguments.attention;
    const int first_word = item_word<kHeadDim>(arguments, piece.first_token, 0);
    const int lane = reread_lane_index();
    const int query_head = first_query_head<kInstance>(arguments, piece) + row;
    const int key_head = attention.num_heads + piece.kv_head;
    HeadSquares squares;
#pragma unroll
    for (uint32_t& word : squares.query) word = is_normed ? kMissing : 0;
    squares.key = is_normed && has_newest ? kMissing : 0;
    squares.query_word = first_word + query_head * kItems + lane % 4 * kLaneItems;
    squares.key_word = first_word + key_head * kItems + lane % kItems;
    return squares;
  }
  __device__ void load_missing(const uint32_t* copy) {
#pragma unroll
    for (int i = 0; i < kLaneItems; ++i) load_if_missing(query[i], copy + query_word + i);
    load_if_missing(key, copy + key_word);
  }
  __device__ bool has_missing() const {
    bool missing = is_missing(key);
#pragma unroll
    for (const uint32_t word : query) missing |= is_missing(word);
    return missing;
  }
};

}  // namespace tessera
