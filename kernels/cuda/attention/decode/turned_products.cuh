// The products of attention turned round, for at most eight query rows: keys, and dimensions of
// values, stand on the 16 rows of a tensor-core tile, queries on its eight columns. That takes half
// the instructions and half the registers of queries on the rows, half of which would be empty.
//   scores^T[keys, queries] = K . Q^T
//   output^T[dimensions, queries] += V^T . weights^T
// With g = lane / 4 and t = lane % 4, a lane has of 16 keys or dimensions g and g + 8 (where not
// said otherwise), and of the queries 2t and 2t + 1: an accumulator's elements are (g, 2t),
// (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). Queries are operand B: query[step] has pairs of query
// g, elements 2t, 2t + 1 and eight further of the step-th 16.
#pragma once

#include "kernels/cuda/attention/decode/e4m3_as_float16.cuh"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/attention/decode/valid_values.cuh"
#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

// Keys and values in the type of the products. kTileKeys: keys that a tile of 16 has; with 8, the
// other half of the tile repeats them, and their scores are -inf. kChains: sums of a score that run
// side by side, to hide the latency of one.
template <typename Element, int kHeadDim, int kTileKeys, int kChains>
struct TurnedProducts {
  static constexpr int kSteps = kHeadDim / 16;
  // Of the 16 dimensions of an output tile a lane has kFirstFactor * g and kDistance further.
  static constexpr int kFirstFactor = 1;
  static constexpr int kDistance = 8;

  // The scores of all tiles, the first of which begins with row `key_row`.
  template <typename Rows, int kTiles>
  static __device__ void multiply_keys(float (&scores)[kTiles][4],
                                       const uint32_t (&query)[kSteps][2], const Rows& keys,
                                       int key_row) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const RowChunks chunks = keys.chunks(key_row + tile * 16, lane % kTileKeys, lane / 16);
      float partial[kChains][4] = {};
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t key[4];
        load_matrices(key, chunks.template address<Rows::kPanelChunks>(step * 2));
        multiply_add<Element>(partial[step % kChains], key, query[step][0], query[step][1]);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float sum = partial[0][i];
#pragma unroll
        for (int chain = 1; chain < kChains; ++chain) sum += partial[chain][i];
        scores[tile][i] = i / 2 * 8 < kTileKeys ? sum : -INFINITY;
      }
    }
  }

  // output += weights . V. With kAreCut, values from the num_valid-th on may be NaN and count as
  // zeros: a weight of 0 would not hide them.
  template <bool kAreCut, typename Rows, int kTiles>
  static __device__ void multiply_values(float (&output)[kSteps][4],
                                         const float (&weights)[kTiles][4], const Rows& values,
                                         int value_row, int num_valid) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint32_t upper =
          transpose_matrix(pack_pair<Element>(weights[tile][0], weights[tile][1]));
      const uint32_t lower =
          transpose_matrix(pack_pair<Element>(weights[tile][2], weights[tile][3]));
      const ValidValues<2> valid(tile * 16 + lane % 4 * 2, num_valid);
      const RowChunks chunks = values.chunks(value_row + tile * 16,
                                             (lane / 16 * 8 + lane % 8) % kTileKeys, lane / 8 % 2);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        uint32_t value[4];
        load_matrices_transposed(value, chunks.template address<Rows::kPanelChunks>(step * 2));
        if constexpr (kAreCut) valid.clear_others(value);
        multiply_add<Element>(output[step], value, upper, lower);
      }
    }
  }
};

// Keys and values in e4m3, in products of float16, which holds every number of e4m3 exactly. The
// instruction that loads matrices moves 16-bit elements, so a lane gets bytes in pairs. Therefore
// sums run over the head's elements in another order, and outputs lie elsewhere:
//   keys      The four bytes of a lane are elements 4t ... 4t + 3 of 16. They stand at places 2t,
//             2t + 1, 2t + 8, 2t + 9 of the product, and so do the queries'.
//   values    Of the 16 dimensions of an output tile, its first 8 rows have the even ones, its
//             second 8 the odd ones.
template <int kHeadDim>
struct TurnedFp8Products {
  static constexpr int kSteps = kHeadDim / 16;
  static constexpr int kFirstFactor = 2;
  static constexpr int kDistance = 1;

  // Turns query g, pairs of bfloat16, into float16. `scales` become what scores of the lane's
  // queries are multiplied by, the scale of the keys included.
  static __device__ void narrow_queries(uint32_t (&query)[kSteps][2], float key_scale,
                                        float (&scales)[2]) {
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
    const float scale = key_scale * narrowing.undo();  // of query g
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      scales[j] = __shfl_sync(kFullWarp, scale, (reread_lane_index() % 4 * 2 + j) * 4);
    }
  }

  // As above.
  template <typename Rows, int kTiles>
  static __device__ void multiply_keys(float (&scores)[kTiles][4],
                                       const uint32_t (&query)[kSteps][2], const float (&scales)[2],
                                       const Rows& keys, int key_row) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const RowChunks chunks = keys.chunks(key_row + tile * 16, lane % 16, lane / 16);
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
        scores[tile][i] = (partial[0][i] + partial[1][i]) * scales[i % 2];
      }
    }
  }

  template <bool kAreCut, typename Rows, int kTiles>
  static __device__ void multiply_values(float (&output)[kSteps][4],
                                         const float (&weights)[kTiles][4], const Rows& values,
                                         int value_row, int num_valid) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      const uint32_t upper =
          transpose_matrix(pack_pair<__half>(weights[tile][0], weights[tile][1]));
      const uint32_t lower =
          transpose_matrix(pack_pair<__half>(weights[tile][2], weights[tile][3]));
      const ValidValues<> valid(tile * 16 + lane % 4 * 2, num_valid);
      const RowChunks chunks = values.chunks(value_row + tile * 16, lane % 16, lane / 16);
#pragma unroll
      for (int step = 0; step < kSteps; step += 2) {
        // 16 dimensions for 8 keys and for the 8 after them, then the next 16.
        uint32_t value[4];
        load_matrices_transposed(value, chunks.template address<Rows::kPanelChunks>(step));
        if constexpr (kAreCut) valid.clear_others(value);
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
};

}  // namespace tessera
