// FlashAttention-2 (Dao 2023) for the query rows of one warp: online softmax over tiles of keys,
// with scores, softmax state and output in registers. The kernels differ only in which rows a warp
// owns and which keys it visits.
//
// For a tile of keys, with c = scale * log2(e):
//   scores = Q . K^T                                    multiply_keys
//   scores[i, j] = -inf where row i does not see key j  mask
//   new_max = max(row_max, max_j scores)                update_softmax
//   scores = 2^(c * scores - c * new_max)
//   row_sum, output *= 2^(c * row_max - c * new_max);  row_sum += sum_j scores
//   output += scores . V                                multiply_values
//
// Scores are rounded to Element for the second product, their sum is taken before rounding.
#pragma once

#include <cmath>

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/swizzled_rows.cuh"

namespace tessera {

// 2^x in one instruction, relative error 2^-22; 2^-inf is 0.
__device__ inline float fast_exp2(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

// kRowTiles tiles of 16 query rows, kKeys keys per tile. In tile m, the lane holds rows
// 16 m + lane / 4 ("half" 0) and 8 further down ("half" 1), columns as in mma.cuh.
template <typename Element, int kHeadDim, int kRowTiles, int kKeys>
struct WarpAttention {
  using Rows = SwizzledRows<Element, kHeadDim>;
  static constexpr int kKeyTiles = kKeys / 8;
  static constexpr int kOutputTiles = kHeadDim / 8;
  // With 128 dimensions, loads of more steps running ahead would spill registers (prefill of 8k on
  // an H200: 275, 297 and 291 TFLOP/s with 1, 2 and 8).
  static constexpr int kStepsUnrolled = kHeadDim < 128 ? kHeadDim / 16 : 2;

  float scores[kRowTiles][kKeyTiles][4];
  float output[kRowTiles][kOutputTiles][4];
  float row_max[kRowTiles][2];  // of raw scores, the same in the four lanes of a row
  float row_sum[kRowTiles][2];  // this lane's share until finish_sums()

  __device__ void reset() {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kOutputTiles; ++n) {
#pragma unroll
        for (float& value : output[m][n]) value = 0.0f;
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        row_max[m][half] = -INFINITY;
        row_sum[m][half] = 0.0f;
      }
    }
  }

  // scores = Q . K^T for query rows from `query_row` and keys from `key_row` of their tiles.
  __device__ void multiply_keys(const Rows& queries, int query_row, const Rows& keys, int key_row) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (float& score : scores[m][n]) score = 0.0f;
      }
    }
#pragma unroll kStepsUnrolled
    for (int step = 0; step < kHeadDim / 16; ++step) {
      uint32_t query[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        load_matrices(query[m],
                      queries.chunk(query_row + m * 16 + lane % 16, step * 2 + lane / 16));
      }
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        uint32_t key[4];
        load_matrices(
            key, keys.chunk(key_row + n * 8 + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          multiply_add<Element>(scores[m][n], query[m], key[0], key[1]);
          multiply_add<Element>(scores[m][n + 1], query[m], key[2], key[3]);
        }
      }
    }
  }

  // Hides the keys that a row does not see. Keys are counted from the tile's first. The lane's
  // first row sees the `window` keys before `visible_end`, each later one kRowStep keys further.
  template <int kRowStep>
  __device__ void mask(int visible_end, int window) {
    const int first_column = reread_lane_index() % 4 * 2;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int end = visible_end + (2 * m + i / 2) * kRowStep - first_column;
        const int begin = end - window;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          const int column = n * 8 + i % 2;
          if (column < begin || column >= end) scores[m][n][i] = -INFINITY;
        }
      }
    }
  }

  // Turns scores into weights relative to the new maximum and rescales what was summed before.
  __device__ void update_softmax(float scale_log2) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float new_max = row_max[m][half];
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          new_max = fmaxf(new_max, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        }
        new_max = fmaxf(new_max, __shfl_xor_sync(kFullWarp, new_max, 1));
        new_max = fmaxf(new_max, __shfl_xor_sync(kFullWarp, new_max, 2));
        // A row that has seen no key yet keeps weights of 0: -inf - 0, not -inf - -inf.
        const float base = new_max == -INFINITY ? 0.0f : new_max * scale_log2;
        const float correction = fast_exp2(row_max[m][half] * scale_log2 - base);
        row_max[m][half] = new_max;
        float sum = row_sum[m][half] * correction;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[m][n][i] = fast_exp2(scores[m][n][i] * scale_log2 - base);
            sum += scores[m][n][i];
          }
        }
        row_sum[m][half] = sum;
#pragma unroll
        for (int n = 0; n < kOutputTiles; ++n) {
          output[m][n][2 * half] *= correction;
          output[m][n][2 * half + 1] *= correction;
        }
      }
    }
  }

  // output += scores . V. The accumulators of two neighbouring key tiles are the A operand of the
  // second product as they are (see mma.cuh), so the weights never leave their registers.
  __device__ void multiply_values(const Rows& values, int value_row) {
    const int lane = reread_lane_index();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t weights[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const auto& pair = scores[m][2 * step + i / 2];
          weights[m][i] = pack_pair<Element>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
        }
      }
#pragma unroll
      for (int n = 0; n < kOutputTiles; n += 2) {
        uint32_t value[4];
        load_matrices_transposed(value,
                                 values.chunk(value_row + step * 16 + lane % 16, n + lane / 16));
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          multiply_add<Element>(output[m][n], weights[m], value[0], value[1]);
          multiply_add<Element>(output[m][n + 1], weights[m], value[2], value[3]);
        }
      }
    }
  }

  // Completes row_sum over the four lanes that share a row.
  __device__ void finish_sums() {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (float& sum : row_sum[m]) {
        sum += __shfl_xor_sync(kFullWarp, sum, 1);
        sum += __shfl_xor_sync(kFullWarp, sum, 2);
      }
    }
  }
};

}  // namespace tessera
