// What one warp of decode attention computes where an item has eight query rows at most: usually a
// token of a sequence, with up to eight query heads for each KV head. Its products are
// TurnedProducts. DecodeWarp and DecodeFp8Warp, which take 16 rows, do twice the work for the same
// result.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/attention/decode/fp8_arguments.cuh"
#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/attention/decode/turned_products.cuh"
#include "kernels/cuda/attention/online_softmax.cuh"

namespace tessera {

// The rows of an item and their softmax; keys have kRowBytes bytes.
template <typename Element, int kHeadDim, int kRowBytes, typename Products, int kWeightShift = 0>
struct NarrowWarpState : OnlineSoftmax<QueryPlace::kColumns, 1, decode_step_keys(kRowBytes) / 16,
                                       kHeadDim / 16, kWeightShift> {
  static constexpr int kKeys = decode_step_keys(kRowBytes);
  static constexpr int kSteps = kHeadDim / 16;

  uint32_t query[kSteps][2];  // of query lane / 4, as operand B
  int visible_begin[2];       // tokens that the lane's queries see
  int visible_end[2];

  // What the lane's queries see, for an item that begins with row `row` of the piece's KV head.
  __device__ void see(const AttentionArguments& arguments, const DecodePiece& piece, int row) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int index = (row + this->row_of(half)) / arguments.heads_per_kv_head;
      const int end = piece.context_length - piece.query_length + index + 1;
      visible_end[half] = arguments.causal ? end : piece.context_length;
      visible_begin[half] = end - arguments.window;
    }
  }

  // Row `row` of the piece's KV head.
  static __device__ const Element* query_row(const AttentionArguments& arguments,
                                             const DecodePiece& piece, int row) {
    return static_cast<const Element*>(arguments.query) +
           step_row(arguments, piece, row) * kHeadDim;
  }

  // Hides the keys that a query does not see; the first key is token `first_token` of the context.
  // Hidden scores are replaced, since keys past the context's end may be NaN.
  __device__ void mask(int first_token) {
    const int first = first_token + reread_lane_index() / 4;
#pragma unroll
    for (int tile = 0; tile < kKeys / 16; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = first + tile * 16 + i / 2 * 8;
        const bool visible = token >= visible_begin[i % 2] && token < visible_end[i % 2];
        if (!visible) this->scores[0][tile][i] = -INFINITY;
      }
    }
  }

  // output += V^T . scores for the values from `value_row` of their tile.
  template <bool kAreCut, typename Rows>
  __device__ void multiply_values(const Rows& values, int value_row, int num_valid) {
    Products::template multiply_values<kAreCut>(this->output[0], this->scores[0], values, value_row,
                                                num_valid);
  }

  // The lane's elements of one of its rows.
  __device__ void store_row(float* row, int half) const {
    row += lane_index() / 4 * Products::kFirstFactor;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      row[step * 16] = this->output[0][step][half];
      row[step * 16 + Products::kDistance] = this->output[0][step][half + 2];
    }
  }
};

// Over keys and values in the type of queries.
template <typename Element, int kHeadDim>
struct NarrowDecodeWarp
    : NarrowWarpState<Element, kHeadDim, 2 * kHeadDim, TurnedProducts<Element, kHeadDim, 16, 4>> {
  using Products = TurnedProducts<Element, kHeadDim, 16, 4>;
  using Base = NarrowWarpState<Element, kHeadDim, 2 * kHeadDim, Products>;

  // Rows [row, row + 8) of the piece's KV head; from `end_row` on they are zeros.
  __device__ void load_queries(const AttentionArguments& arguments, const DecodePiece& piece,
                               int row, int end_row) {
    this->see(arguments, piece, row);
    const int lane = lane_index();
    const int my_row = row + lane / 4;
    const auto* const pairs =
        reinterpret_cast<const uint32_t*>(this->query_row(arguments, piece, my_row));
#pragma unroll
    for (int step = 0; step < Base::kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        this->query[step][i] = my_row < end_row ? pairs[step * 8 + i * 4 + lane % 4] : 0;
      }
    }
  }

  // scores = K . Q^T for the keys from `key_row` of their tile.
  template <typename Rows>
  __device__ void multiply_keys(const Rows& keys, int key_row) {
    Products::multiply_keys(this->scores[0], this->query, keys, key_row);
  }

  // Called after a piece's last keys.
  __device__ void finish(const AttentionArguments& /*arguments*/, const DecodePiece& /*piece*/) {
    this->finish_sums();
  }
};

// Over keys and values in e4m3.
template <typename Element, int kHeadDim>
struct NarrowFp8DecodeWarp
    : NarrowWarpState<Element, kHeadDim, kHeadDim, TurnedFp8Products<kHeadDim>, kFp8WeightShift> {
  using Products = TurnedFp8Products<kHeadDim>;
  using Base = NarrowWarpState<Element, kHeadDim, kHeadDim, Products, kFp8WeightShift>;

  float score_scales[2];  // what scores of the lane's queries are multiplied by

  // As in NarrowDecodeWarp; the queries become float16.
  __device__ void load_queries(const Fp8DecodeArguments& arguments, const DecodePiece& piece,
                               int row, int end_row) {
    this->see(arguments, piece, row);
    const int lane = lane_index();
    const int my_row = row + lane / 4;
    const float key_scale = arguments.key_scales[piece.kv_head];
    const auto* const elements =
        reinterpret_cast<const uint2*>(this->query_row(arguments, piece, my_row));
#pragma unroll
    for (int step = 0; step < Base::kSteps; ++step) {
      const uint2 four = my_row < end_row ? elements[step * 4 + lane % 4] : uint2{0, 0};
      this->query[step][0] = four.x;
      this->query[step][1] = four.y;
    }
    if constexpr (std::is_same_v<Element, __half>) {
      score_scales[0] = score_scales[1] = key_scale;
    } else {
      Products::narrow_queries(this->query, key_scale, score_scales);
    }
  }

  template <typename Rows>
  __device__ void multiply_keys(const Rows& keys, int key_row) {
    Products::multiply_keys(this->scores[0], this->query, score_scales, keys, key_row);
  }

  // Completes row_sum, and outputs by the scale of the values.
  __device__ void finish(const Fp8DecodeArguments& arguments, const DecodePiece& piece) {
    this->finish_sums();
    const float value_scale = arguments.value_scales[piece.kv_head];
#pragma unroll
    for (auto& tile : this->output[0]) {
#pragma unroll
      for (float& value : tile) value *= value_scale;
    }
  }
};

}  // namespace tessera
