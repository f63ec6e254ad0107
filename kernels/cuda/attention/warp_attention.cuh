// FlashAttention-2 (Dao 2023) for the query rows of one warp: online softmax over tiles of keys,
// with scores, softmax state and output in registers. The kernels differ only in which rows a warp
// owns and which keys it visits.
//
// For a tile of keys, with c = scale * log2(e):
//   scores = Q . K^T                                    multiply_keys
//   scores = tanh(scores * scale / softcap)             cap, with a softcap; c = softcap * log2(e)
//   scores[i, j] = -inf where row i does not see key j  mask
//   new_max = max(row_max, max_j scores)                update_softmax
//   scores = 2^(c * scores - c * new_max)
//   row_sum, output *= 2^(c * row_max - c * new_max);  row_sum += sum_j scores
//   output += scores . V                                multiply_values
//
// Scores are rounded to Element for the second product; their sum is taken before rounding. row_max
// need not be the exact maximum, because the result does not depend on it. As long as weights stay
// below 2^kLargestWeightLog2, row_max stays as it is and rescaling is skipped (an idea of
// FlashAttention-4; prefill of 8k on an H200: 352 TFLOP/s without, 380 with it).
#pragma once

#include <cmath>

#include "kernels/cuda/primitives/exponential.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/cuda/primitives/swizzled_rows.cuh"

namespace tessera {

// kRowTiles tiles of 16 query rows, kKeys keys per tile. In tile m, the lane holds rows
// 16 m + lane / 4 ("half" 0) and 8 further down ("half" 1), columns as in primitives/mma.cuh.
// Weights and their sums are multiplied by 2^kWeightShift, which the result does not show.
template <typename Element, int kHeadDim, int kRowTiles, int kKeys, int kWeightShift = 0>
struct WarpAttention {
  using Rows = SwizzledRows<Element, kHeadDim>;
  static constexpr int kKeyTiles = kKeys / 8;
  static constexpr int kOutputTiles = kHeadDim / 8;
  static constexpr float kLargestWeightLog2 = 8.0f;  // far from what float16 can hold, 2^16

  float scores[kRowTiles][kKeyTiles][4];
  float output[kRowTiles][kOutputTiles][4];
  float row_max[kRowTiles][2];  // about the maximum of raw scores, the same in a row's four lanes
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
    const uint32_t lane = reread_lane_index();
    const auto lane_queries = queries.lane_rows(query_row + lane % 16, lane / 16);
    const auto lane_keys = keys.lane_rows(key_row + lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (float& score : scores[m][n]) score = 0.0f;
      }
    }
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      uint32_t query[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        load_matrices(query[m], lane_queries.chunk(m * 16, step * 2));
      }
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        uint32_t key[4];
        load_matrices(key, lane_keys.chunk(n * 8, step * 2));
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          multiply_add<Element>(scores[m][n], query[m], key[0], key[1]);
          multiply_add<Element>(scores[m][n + 1], query[m], key[2], key[3]);
        }
      }
    }
  }

  // Squeezes scores into (-1, 1). What is left of the softcap is in the scale of the softmax.
  __device__ void cap(float softcap_scale) {
    if (softcap_scale == 0.0f) return;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (float& score : scores[m][n]) score = tanh_of(score * softcap_scale);
      }
    }
  }

  // Hides the keys that a row does not see. Keys are counted from the tile's first. The lane's
  // first row sees the `window` keys before `visible_end`, each later one row_step keys further.
  __device__ void mask(int visible_end, int window, int row_step) {
    const int first_column = reread_lane_index() % 4 * 2;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int end = visible_end + (2 * m + i / 2) * row_step - first_column;
        const int begin = end - window;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          const int column = n * 8 + i % 2;
          if (column < begin || column >= end) scores[m][n][i] = -INFINITY;
        }
      }
    }
  }

  // Turns scores into weights relative to row_max, which it updates with what depends on it.
  __device__ void update_softmax(float scale_log2) {
    float new_max[kRowTiles][2];
    bool rescales = false;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float largest = scores[m][0][2 * half];
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          largest = fmaxf(largest, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
        }
        max_over_row(largest);
        // Each row decides for itself, so that results do not depend on the rows beside it. This is
        // false as long as a row has seen no key, because -inf - -inf is NaN.
        const bool grows = (largest - row_max[m][half]) * scale_log2 > kLargestWeightLog2;
        new_max[m][half] = grows ? largest : row_max[m][half];
        rescales |= grows;
      }
    }
    if (__any_sync(kFullWarp, rescales)) rescale(new_max, scale_log2);
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float base = finite_or_zero(row_max[m][half]) * scale_log2;
        if constexpr (kWeightShift != 0) base -= kWeightShift;
        float sum = row_sum[m][half];
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i) {
            scores[m][n][i] = fast_exp2(scores[m][n][i] * scale_log2 - base);
            sum += scores[m][n][i];
          }
        }
        row_sum[m][half] = sum;
      }
    }
  }

  __device__ void rescale(const float (&new_max)[kRowTiles][2], float scale_log2) {
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float base = finite_or_zero(new_max[m][half]);
        const float correction = fast_exp2((row_max[m][half] - base) * scale_log2);
        row_max[m][half] = new_max[m][half];
        row_sum[m][half] *= correction;
#pragma unroll
        for (int n = 0; n < kOutputTiles; ++n) {
          output[m][n][2 * half] *= correction;
          output[m][n][2 * half + 1] *= correction;
        }
      }
    }
  }

  // A row that has seen no key keeps weights and sums of 0: 2^(-inf - 0), not 2^(-inf - -inf).
  __device__ static float finite_or_zero(float maximum) {
    return maximum == -INFINITY ? 0.0f : maximum;
  }

  // The weights of row tile m for the step-th 16 keys, rounded, as operand A of the second product.
  // The accumulators of two neighbouring key tiles are that operand as they are (see
  // primitives/mma.cuh), so the weights never leave their registers.
  __device__ void round_weights(uint32_t (&weights)[4], int m, int step) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto& pair = scores[m][2 * step + i / 2];
      weights[i] = pack_pair<Element>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }

  // output += scores . V
  __device__ void multiply_values(const Rows& values, int value_row) {
    const uint32_t lane = reread_lane_index();
    const auto lane_values = values.lane_rows(value_row + lane % 16, lane / 16);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t weights[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) round_weights(weights[m], m, step);
#pragma unroll
      for (int n = 0; n < kOutputTiles; n += 2) {
        uint32_t value[4];
        load_matrices_transposed(value, lane_values.chunk(step * 16, n));
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
      for (float& sum : row_sum[m]) sum_over_row(sum);
    }
  }
};

}  // namespace tessera
