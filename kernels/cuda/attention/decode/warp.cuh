// What one warp of decode attention computes: 16 query rows, kept in registers, and
// decode_step_keys keys at a time. Items of eight rows at most are narrow_warp.cuh's.
#pragma once

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/attention/decode/valid_values.cuh"
#include "kernels/cuda/attention/warp_attention.cuh"

namespace tessera {

template <typename Element, int kHeadDim>
struct DecodeWarp : WarpAttention<Element, kHeadDim, 1, decode_step_keys(2 * kHeadDim)> {
  static constexpr int kKeys = decode_step_keys(2 * kHeadDim);
  using Base = WarpAttention<Element, kHeadDim, 1, kKeys>;
  static constexpr int kSteps = kHeadDim / 16;
  // How many sums of a score run side by side. With one, its latency would show in the last tile of
  // a block. Wide heads have no registers for two.
  static constexpr int kChains = kHeadDim > 128 ? 1 : 2;

  uint32_t query[kSteps][4];  // as operand A
  int visible_begin[2];       // tokens that the lane's rows see: lane / 4 and 8 further down
  int visible_end[2];

  // Rows [row, row + 16) of the piece's KV head; from `end_row` on they are zeros.
  __device__ void load_queries(const AttentionArguments& arguments, const DecodePiece& piece,
                               int row, int end_row) {
    const int lane = lane_index();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int my_row = row + half * 8 + lane / 4;
      const int index = my_row / arguments.heads_per_kv_head;  // of the query in its sequence
      const int end = piece.context_length - piece.query_length + index + 1;
      visible_end[half] = arguments.causal ? end : piece.context_length;
      visible_begin[half] = end - arguments.window;
      const auto* const source =
          reinterpret_cast<const uint32_t*>(static_cast<const Element*>(arguments.query) +
                                            step_row(arguments, piece, my_row) * kHeadDim);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int i = half; i < 4; i += 2) {
          query[step][i] = my_row < end_row ? source[step * 8 + i / 2 * 4 + lane % 4] : 0;
        }
      }
    }
  }

  // scores = Q . K^T for the keys from `key_row` of their tile.
  template <typename Rows>
  __device__ void multiply_keys(const Rows& keys, int key_row) {
    const int lane = reread_lane_index();
    float partial[kChains][kKeys / 8][4] = {};
#pragma unroll
    for (int n = 0; n < kKeys / 8; n += 2) {
      const RowChunks chunks = keys.chunks(key_row + n * 8, lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t key[4];
        load_matrices(key, chunks.address<Rows::kPanelChunks>(step * 2));
        multiply_add<Element>(partial[step % kChains][n], query[step], key[0], key[1]);
        multiply_add<Element>(partial[step % kChains][n + 1], query[step], key[2], key[3]);
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        this->scores[0][n][i] =
            partial[0][n][i] + (kChains > 1 ? partial[kChains - 1][n][i] : 0.0f);
      }
    }
  }

  // Hides the keys that a row does not see; the first key is token `first_token` of the context.
  // Hidden scores are replaced, since keys past the context's end may be NaN.
  __device__ void mask(int first_token) {
    const int column = first_token + reread_lane_index() % 4 * 2;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = column + n * 8 + i % 2;
        const bool visible = token >= visible_begin[i / 2] && token < visible_end[i / 2];
        if (!visible) this->scores[0][n][i] = -INFINITY;
      }
    }
  }

  // output += scores . V for the values from `value_row` of their tile. With kAreCut, those from
  // the num_valid-th on may be NaN and count as zeros: a weight of 0 would not hide them.
  template <bool kAreCut, typename Rows>
  __device__ void multiply_values(const Rows& values, int value_row, int num_valid) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t weights[4];
      this->round_weights(weights, 0, step);
      const ValidValues<> valid(step * 16 + lane % 4 * 2, num_valid);
      const RowChunks chunks = values.chunks(value_row + step * 16, lane % 16, lane / 16);
#pragma unroll
      for (int n = 0; n < Base::kOutputTiles; n += 2) {
        uint32_t value[4];
        load_matrices_transposed(value, chunks.address<Rows::kPanelChunks>(n));
        if constexpr (kAreCut) valid.clear_others(value);
        multiply_add<Element>(this->output[0][n], weights, value[0], value[1]);
        multiply_add<Element>(this->output[0][n + 1], weights, value[2], value[3]);
      }
    }
  }

  // Called after a piece's last keys.
  __device__ void finish(const AttentionArguments& /*arguments*/, const DecodePiece& /*piece*/) {
    this->finish_sums();
  }

  // The lane's elements of the output's row lane / 4, or 8 further down.
  __device__ void store_row(float* row, int half) const {
    const int lane = lane_index();
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      const auto& values = this->output[0][n];
      reinterpret_cast<float2*>(row + n * 8)[lane % 4] =
          make_float2(values[2 * half], values[2 * half + 1]);
    }
  }
};

}  // namespace tessera
