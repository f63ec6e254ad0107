// FlashAttention (Dao et al. 2022; the overlap is version 3's, Shah et al. 2024) for the 64 query
// rows of one warpgroup: the arithmetic of attention/online_softmax.cuh, with products that run
// while the threads do other things.
#pragma once

#include <cmath>

#include "kernels/cuda/primitives/exponential.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

// A lane holds two query rows, 16 * (warp of the group) + lane / 4 ("half" 0) and 8 further down
// ("half" 1), and of each every fourth pair of columns; see primitives/wgmma.cuh.
template <typename Element, int kHeadDim, int kKeys>
struct WarpgroupAttention {
  static constexpr int kKeyPanelBytes = kKeys * kPanelRowBytes;

  float scores[kKeys / 2];
  // Scores after the softmax, rounded: operand A of the second product.
  uint32_t weights[kKeys / 4];
  float output[kHeadDim / 2];
  float row_max[2];     // of raw scores, the same in the four lanes of a row
  float row_sum[2];     // this lane's share until finish_sums()
  float correction[2];  // what output has to be multiplied with

  __device__ __forceinline__ void reset() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row_max[half] = -INFINITY;
      row_sum[half] = 0.0f;
    }
  }

  // Starts scores = Q . K^T. query_rows: the group's 64 rows in a tile of kTileQueries.
  template <int kTileQueries>
  __device__ __forceinline__ void start_scores(const Element* query_rows, const Element* keys) {
    const auto query = MatrixDescriptor::of_rows(query_rows);
    const auto key = MatrixDescriptor::of_rows(keys);
    pin_registers(scores);
    wgmma_fence();
#pragma unroll
    for (int column = 0; column < kHeadDim; column += 16) {
      const int panel = column / kPanelColumns;
      const int byte = column % kPanelColumns * static_cast<int>(sizeof(Element));
      wgmma_rows<Element>(scores, query.advanced(panel * kTileQueries * kPanelRowBytes + byte),
                          key.advanced(panel * kKeyPanelBytes + byte), column > 0);
    }
    wgmma_commit();
    pin_registers(scores);
  }

  // Starts output += weights . V, or output = when it is the first.
  __device__ __forceinline__ void start_output(const Element* values, bool accumulate) {
    const auto value = MatrixDescriptor::of_columns(values, kKeyPanelBytes);
    pin_registers(weights);
    pin_registers(output);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      wgmma_columns<Element>(output, weights + 4 * step, value.advanced(step * 16 * kPanelRowBytes),
                             accumulate || step > 0);
    }
    wgmma_commit();
    pin_registers(output);
  }

  __device__ __forceinline__ void cap(float softcap_scale) {
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) scores[i] = tanh_of(scores[i] * softcap_scale);
  }

  // Hides the keys outside [begin[half], end[half]), counted from the tile's first.
  __device__ __forceinline__ void mask(const int (&begin)[2], const int (&end)[2]) {
    const int first_column = reread_lane_index() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int low = begin[half] - first_column;
      const int high = end[half] - first_column;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = n * 8 + i;
          if (column < low || column >= high) scores[4 * n + 2 * half + i] = -INFINITY;
        }
      }
    }
  }

  // Turns scores into weights relative to the new maximum; `correction` says what that makes of the
  // output so far. kMayBeEmpty: a row may have seen no key yet.
  template <bool kMayBeEmpty>
  __device__ __forceinline__ void update_softmax(float scale_log2) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float new_max = row_max[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        new_max = fmaxf(new_max, fmaxf(scores[4 * n + 2 * half], scores[4 * n + 2 * half + 1]));
      }
      max_over_row(new_max);
      // Weights of 0, not NaN: -inf - 0 instead of -inf - -inf.
      const float base = kMayBeEmpty && new_max == -INFINITY ? 0.0f : new_max * scale_log2;
      correction[half] = fast_exp2(row_max[half] * scale_log2 - base);
      row_max[half] = new_max;
      float sum = row_sum[half] * correction[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          float& score = scores[4 * n + i];
          score = fast_exp2(score * scale_log2 - base);
          sum += score;
        }
      }
      row_sum[half] = sum;
    }
  }

  __device__ __forceinline__ void round_weights() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) {
      weights[i] = pack_pair<Element>(scores[2 * i], scores[2 * i + 1]);
    }
  }

  __device__ __forceinline__ void rescale_output() {
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[4 * n + i] *= correction[i / 2];
    }
  }

  // Completes row_sum over the four lanes that share a row.
  __device__ __forceinline__ void finish_sums() {
#pragma unroll
    for (float& sum : row_sum) sum_over_row(sum);
  }
};

}  // namespace tessera
