// What one warp of the fused decode kernel computes of attention over keys and values in e4m3, in
// products of float16, which holds every number of e4m3 exactly (attention/decode/fp8_warp.cuh).
//
// The instruction that loads matrices moves 16-bit elements, so a lane gets bytes in pairs.
// Therefore sums run over the head's elements in another order, and outputs lie elsewhere:
//   keys      The four bytes of a lane are elements 4t ... 4t + 3 of 16, with t = lane % 4. They
//             stand at places 2t, 2t + 1, 2t + 8, 2t + 9 of the product, and so do the queries'.
//   values    Of the 16 dimensions of an output tile, its first 8 rows have the even ones, its
//             second 8 the odd ones.
#pragma once

#include "kernels/cuda/attention/decode/fp8_warp.cuh"
#include "kernels/cuda/decode_step/warp.cuh"
#include "kernels/cuda/primitives/wgmma_fp8.cuh"

namespace tessera {

template <int kHeadDim>
struct FusedFp8AttentionWarp : FusedWarpState<kHeadDim, unit_tokens(kHeadDim, 1), kFp8WeightShift> {
  using Base = FusedWarpState<kHeadDim, unit_tokens(kHeadDim, 1), kFp8WeightShift>;
  // Two e4m3 count as one element of 16 bits.
  using Rows = BoxRows<__half, kHeadDim / 2>;
  using Base::kKeyTiles;
  using Base::kSteps;
  using Base::output;
  using Base::query;
  using Base::scores;
  static_assert(Base::kTileKeys == 16);

  float score_scales[2];  // what scores of both queries are multiplied by

  // Turns the queries, pairs of bfloat16, into float16.
  __device__ void narrow_queries(float key_scale) {
    float largest = 0.0f;
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (const uint32_t pair : query[step]) {
        largest = fmaxf(largest, largest_of_pair(pair));
      }
    }
    max_over_row(largest);
    const QueryNarrowing narrowing(largest);
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (uint32_t& pair : query[step]) pair = narrowing.narrow(pair);
    }
    const float scale = key_scale * narrowing.undo();  // of query lane / 4
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      score_scales[j] = __shfl_sync(kFullWarp, scale, (reread_lane_index() % 4 * 2 + j) * 4);
    }
  }

  __device__ void multiply_keys(const Rows& keys) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
      const RowChunks chunks = keys.chunks(tile * 16, lane % 16, lane / 16);
      float partial[2][4] = {};  // side by side, to hide the latency of one sum
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        // The 16 elements of this step for 8 keys and for the 8 after them, then of the next step.
        uint32_t key[4];
        load_matrices(key, chunks.template address<Rows::kPanelChunks>(step));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const uint32_t upper = key[2 * i];
          const uint32_t lower = key[2 * i + 1];
          const uint32_t operand[4] = {widen_pair(upper & 0xffffu), widen_pair(lower & 0xffffu),
                                       widen_pair(upper >> 16), widen_pair(lower >> 16)};
          multiply_add<__half>(partial[i], operand, query[step + i][0], query[step + i][1]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[tile][i] = (partial[0][i] + partial[1][i]) * score_scales[i % 2];
      }
    }
  }

  __device__ void multiply_values(const Rows& values) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
      const uint32_t upper = transpose_matrix(pack_pair<__half>(scores[tile][0], scores[tile][1]));
      const uint32_t lower = transpose_matrix(pack_pair<__half>(scores[tile][2], scores[tile][3]));
      const RowChunks chunks = values.chunks(tile * 16, lane % 16, lane / 16);
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        // 16 dimensions for 8 keys and for the 8 after them, then the next 16.
        uint32_t value[4];
        load_matrices_transposed(value, chunks.template address<Rows::kPanelChunks>(step));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          // The bytes are (even, odd) dimension of one key, then of the next: sort by dimension.
          const uint32_t first = __byte_perm(value[2 * i], 0, 0x3120);
          const uint32_t second = __byte_perm(value[2 * i + 1], 0, 0x3120);
          const uint32_t operand[4] = {widen_pair(first & 0xffffu), widen_pair(first >> 16),
                                       widen_pair(second & 0xffffu), widen_pair(second >> 16)};
          multiply_add<__half>(output[step + i], operand, upper, lower);
        }
      }
    }
  }

  // Multiplies the output by the scale of the values.
  __device__ void scale_output(float value_scale) {
#pragma unroll
    for (auto& tile : output) {
#pragma unroll
      for (float& value : tile) value *= value_scale;
    }
  }

  __device__ void store(const DecodeStaging<kHeadDim>& staging, int slice, int num_rows) const {
    this->template store_dimensions<2, 1>(staging, slice, num_rows);
  }
};

}  // namespace tessera
