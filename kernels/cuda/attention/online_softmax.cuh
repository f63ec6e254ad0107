// The online softmax of FlashAttention-2 (Dao 2023) for the query rows of one warp, over tiles of
// keys, with scores, softmax state and output in the registers of its lanes.
//
// For a tile of keys, with c = scale * log2(e):
//   scores = Q . K^T                                    multiply_keys, of whoever derives from this
//   scores = tanh(scores * scale / softcap)             cap, with a softcap; c = softcap * log2(e)
//   scores[i, j] = -inf where row i does not see key j  mask, likewise
//   new_max = max(row_max, max_j scores)                update_softmax
//   scores = 2^(c * scores - c * new_max)
//   row_sum, output *= 2^(c * row_max - c * new_max);  row_sum += sum_j scores
//   output += scores . V                                multiply_values, likewise
//
// Scores are rounded to Element for the second product; their sum is taken before rounding. row_max
// need not be the exact maximum, because the result does not depend on it. As long as weights stay
// below 2^kLargestWeightLog2, row_max stays as it is and rescaling is skipped (an idea of
// FlashAttention-4; prefill of 8k on an H200: 352 TFLOP/s without, 380 with it). Then no lane needs
// to know what the others of its row have.
#pragma once

#include <cmath>

#include "kernels/cuda/primitives/exponential.cuh"
#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

// Where a lane's elements of a tensor-core tile stand (primitives/mma.cuh). A lane has a part of
// two query rows of each tile, its "halves".
enum class QueryPlace {
  kRows,     // 16 queries a tile; the lane has rows lane / 4 and 8 further down, with three others
  kColumns,  // 8 queries a tile; the lane has columns 2 (lane % 4) and the next, with seven others
};

// kQueryTiles tiles of queries. Scores and output are kScoreTiles and kOutputTiles accumulators of
// tensor-core products for each. Weights and their sums are multiplied by 2^kWeightShift, which the
// result does not show.
template <QueryPlace kPlace, int kQueryTiles, int kScoreTiles, int kOutputTiles,
          int kWeightShift = 0>
struct OnlineSoftmax {
  static constexpr bool kAreRows = kPlace == QueryPlace::kRows;
  static constexpr float kLargestWeightLog2 = 8.0f;  // far from what float16 can hold, 2^16

  float scores[kQueryTiles][kScoreTiles][4];
  float output[kQueryTiles][kOutputTiles][4];
  float row_max[kQueryTiles][2];  // about the maximum of raw scores, the same in a row's lanes
  float row_sum[kQueryTiles][2];  // this lane's share until finish_sums()

  // The index of the i-th element, 0 or 1, of a half in an accumulator.
  static constexpr int element(int half, int i) { return kAreRows ? 2 * half + i : half + 2 * i; }
  // Which row of its tile a half is.
  static __device__ int row_of(int half) {
    return kAreRows ? half * 8 + lane_index() / 4 : lane_index() % 4 * 2 + half;
  }
  // True in one of the lanes that share a row.
  static __device__ bool speaks_for_row() {
    return kAreRows ? lane_index() % 4 == 0 : lane_index() < 4;
  }

  __device__ void reset() {
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
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

  // Squeezes scores into (-1, 1). What is left of the softcap is in the scale of the softmax.
  __device__ void cap(float softcap_scale) {
    if (softcap_scale == 0.0f) return;
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
        for (float& score : scores[m][n]) score = tanh_of(score * softcap_scale);
      }
    }
  }

  // Turns scores into weights relative to row_max, which it updates with what depends on it.
  __device__ void update_softmax(float scale_log2) {
    float largest[kQueryTiles][2];  // of the lane's own scores
    bool rescales = false;
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        largest[m][half] = scores[m][0][element(half, 0)];
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
          largest[m][half] = fmaxf(largest[m][half], fmaxf(scores[m][n][element(half, 0)],
                                                           scores[m][n][element(half, 1)]));
        }
        rescales |= grows(largest[m][half], row_max[m][half], scale_log2);
      }
    }
    if (__any_sync(kFullWarp, rescales)) rescale(largest, scale_log2);
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float base = finite_or_zero(row_max[m][half]) * scale_log2;
        if constexpr (kWeightShift != 0) base -= kWeightShift;
        float sum = row_sum[m][half];
#pragma unroll
        for (int n = 0; n < kScoreTiles; ++n) {
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            float& score = scores[m][n][element(half, i)];
            score = fast_exp2(score * scale_log2 - base);
            sum += score;
          }
        }
        row_sum[m][half] = sum;
      }
    }
  }

  // Each row decides for itself, so that results do not depend on the rows beside it. This is false
  // as long as a row has seen no key, because -inf - -inf is NaN.
  static __device__ bool grows(float largest, float row_max, float scale_log2) {
    return (largest - row_max) * scale_log2 > kLargestWeightLog2;
  }

  // largest: of the lane's own scores; then of all scores of its rows.
  __device__ void rescale(float (&largest)[kQueryTiles][2], float scale_log2) {
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        if constexpr (kAreRows) {
          max_over_row(largest[m][half]);
        } else {
          max_over_column(largest[m][half]);
        }
        const float old_max = row_max[m][half];
        const float new_max =
            grows(largest[m][half], old_max, scale_log2) ? largest[m][half] : old_max;
        const float correction = fast_exp2((old_max - finite_or_zero(new_max)) * scale_log2);
        row_max[m][half] = new_max;
        row_sum[m][half] *= correction;
#pragma unroll
        for (int n = 0; n < kOutputTiles; ++n) {
          output[m][n][element(half, 0)] *= correction;
          output[m][n][element(half, 1)] *= correction;
        }
      }
    }
  }

  // A row that has seen no key keeps weights and sums of 0: 2^(-inf - 0), not 2^(-inf - -inf).
  __device__ static float finite_or_zero(float maximum) {
    return maximum == -INFINITY ? 0.0f : maximum;
  }

  // Completes row_sum over the lanes that share a row.
  __device__ void finish_sums() {
#pragma unroll
    for (int m = 0; m < kQueryTiles; ++m) {
#pragma unroll
      for (float& sum : row_sum[m]) {
        if constexpr (kAreRows) {
          sum_over_row(sum);
        } else {
          sum_over_column(sum);
        }
      }
    }
  }
};

}  // namespace tessera
