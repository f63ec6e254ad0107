// What one warp of decode attention computes over keys and values in e4m3. It differs from
// DecodeWarp in that products are of float16, which holds every number of e4m3 exactly. One
// instruction makes two float16 of two e4m3 bytes; for bfloat16 it would take five.
//
// The instruction that loads matrices moves 16-bit elements, so a lane gets bytes in pairs.
// Therefore sums run over the head's elements in another order, and output columns lie elsewhere:
//   keys      The four bytes of a lane are elements 4t ... 4t + 3 of 16, with t = lane % 4. They
//             stand at places 2t, 2t + 1, 2t + 8, 2t + 9 of the product, and so do the queries'.
//   values    For even n, output tile n has the even elements of 16, and output tile n + 1 the odd
//             ones.
#pragma once

#include "kernels/cuda/attention/decode/e4m3_as_float16.cuh"
#include "kernels/cuda/attention/decode/fp8_arguments.cuh"
#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/attention/decode/valid_values.cuh"
#include "kernels/cuda/attention/warp_attention.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

template <typename Element, int kHeadDim>
struct DecodeFp8Warp
    : WarpAttention<__half, kHeadDim, 1, decode_step_keys(kHeadDim), kFp8WeightShift> {
  static constexpr int kKeys = decode_step_keys(kHeadDim);
  using Base = WarpAttention<__half, kHeadDim, 1, kKeys, kFp8WeightShift>;
  static constexpr int kSteps = kHeadDim / 16;
  static constexpr int kScales = std::is_same_v<Element, __half> ? 1 : 2;
  // As in DecodeWarp; sums of 32 keys are enough to run side by side.
  static constexpr int kChains = kHeadDim > 128 || kKeys > 16 ? 1 : 2;

  uint32_t query[kSteps][4];  // as operand A, in float16
  // The factors of the scores of the lane's rows; one for both rows where Element is float16.
  float score_scales[kScales];
  int visible_end[2];  // ends of the tokens that rows lane / 4 and lane / 4 + 8 see
  int window;          // how many tokens before that end they see; all without causal

  // Rows [row, row + 16) of the piece's KV head; from `end_row` on they are zeros.
  __device__ void load_queries(const Fp8DecodeArguments& arguments, const DecodePiece& piece,
                               int row, int end_row) {
    const int lane = lane_index();
    window = arguments.window;
    const float key_scale = arguments.key_scales[piece.kv_head];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int my_row = row + half * 8 + lane / 4;
      const int index = my_row / arguments.heads_per_kv_head;  // of the query in its sequence
      const int head = piece.kv_head * arguments.heads_per_kv_head + my_row -
                       index * arguments.heads_per_kv_head;
      const int end = piece.context_length - piece.query_length + index + 1;
      visible_end[half] = arguments.causal ? end : piece.context_length;
      if (half == 1 && row + 8 >= end_row) {  // the item has no such rows
#pragma unroll
        for (int step = 0; step < kSteps; ++step) query[step][1] = query[step][3] = 0;
        score_scales[half % kScales] = key_scale;
        break;
      }
      const auto* const source = reinterpret_cast<const uint2*>(
          static_cast<const Element*>(arguments.query) +
          (static_cast<int64_t>(piece.first_token + index) * arguments.num_heads + head) *
              kHeadDim);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const uint2 elements = my_row < end_row ? source[step * 4 + lane % 4] : uint2{0, 0};
        query[step][half] = elements.x;
        query[step][half + 2] = elements.y;
      }
      score_scales[half % kScales] = key_scale * narrow_queries(half);
    }
  }

  // Turns a row of queries, loaded as Elements, into float16. Returns the factor that undoes what a
  // row of bfloat16 was multiplied by.
  __device__ float narrow_queries(int half) {
    if constexpr (std::is_same_v<Element, __half>) {
      return 1.0f;
    } else {
      float largest = 0.0f;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int i = half; i < 4; i += 2) {
          largest = fmaxf(largest, largest_of_pair(query[step][i]));
        }
      }
      max_over_row(largest);
      const QueryNarrowing narrowing(largest);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
#pragma unroll
        for (int i = half; i < 4; i += 2) {
          query[step][i] = narrowing.narrow(query[step][i]);
        }
      }
      return narrowing.undo();
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
      for (int step = 0; step < kSteps; step += 2) {
        // A chunk is the 16 elements of a step: those of this step and of the next for 8 keys, then
        // for the 8 after them.
        uint32_t key[4];
        load_matrices(key, chunks.address<Rows::kPanelChunks>(step));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          multiply_add<__half>(partial[i % kChains][n + i / 2], query[step + i % 2],
                               widen_pair(key[i] & 0xffffu), widen_pair(key[i] >> 16));
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float sum = partial[0][n][i] + (kChains > 1 ? partial[kChains - 1][n][i] : 0.0f);
        this->scores[0][n][i] = sum * score_scales[i / 2 % kScales];
      }
    }
  }

  // As in DecodeWarp.
  __device__ void mask(int first_token) {
    const int column = first_token + reread_lane_index() % 4 * 2;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int token = column + n * 8 + i % 2;
        const int end = visible_end[i / 2];
        const bool visible = token >= end - window && token < end;
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
      for (int n = 0; n < Base::kOutputTiles; n += 4) {
        // Two chunks of 16 elements, each for the 8 tokens of value[i] and the 8 of value[i + 1].
        uint32_t value[4];
        load_matrices_transposed(value, chunks.address<Rows::kPanelChunks>(n / 2));
        if constexpr (kAreCut) valid.clear_others(value);
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          // The bytes are (even, odd) element of one token, then of the next: sort them by element.
          value[i] = __byte_perm(value[i], 0, 0x3120);
          value[i + 1] = __byte_perm(value[i + 1], 0, 0x3120);
          multiply_add<__half>(this->output[0][n + i], weights, widen_pair(value[i] & 0xffffu),
                               widen_pair(value[i + 1] & 0xffffu));
          multiply_add<__half>(this->output[0][n + i + 1], weights, widen_pair(value[i] >> 16),
                               widen_pair(value[i + 1] >> 16));
        }
      }
    }
  }

  // Completes row_sum, and outputs by the scale of the values.
  __device__ void finish(const Fp8DecodeArguments& arguments, const DecodePiece& piece) {
    Base::finish_sums();
    const float value_scale = arguments.value_scales[piece.kv_head];
#pragma unroll
    for (auto& tile : this->output[0]) {
#pragma unroll
      for (float& value : tile) value *= value_scale;
    }
  }

  // The lane's elements of the output's row lane / 4, or 8 further down.
  __device__ void store_row(float* row, int half) const {
    const int lane = lane_index();
#pragma unroll
    for (int n = 0; n < Base::kOutputTiles; n += 2) {
      const auto& even = this->output[0][n];
      const auto& odd = this->output[0][n + 1];
      reinterpret_cast<float4*>(row + n * 8)[lane % 4] =
          make_float4(even[2 * half], odd[2 * half], even[2 * half + 1], odd[2 * half + 1]);
    }
  }
};

}  // namespace tessera
