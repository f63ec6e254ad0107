// FlashAttention-3 (Shah et al. 2024) in float8_e4m3 for the 64 query rows of one warpgroup, tiles
// of 128 keys, head_dim 128. Lanes hold rows and columns as in prefill/warpgroup_attention.cuh.
//
// Two things differ from the 16-bit kernel. A weight is needed with four significant bits only, so
// that its bits are computed from the exponent itself (weight_code) instead of an exponential that
// is then rounded; and the sums of weights come from the tensor cores, because eight columns of
// ones stand behind the values, so that they are sums of the very weights that these were
// multiplied with.
#pragma once

#include <cmath>

#include "kernels/cuda/attention/prefill_fp8/plan.h"
#include "kernels/cuda/primitives/exponential.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/cuda/primitives/wgmma_fp8.cuh"

namespace tessera {

// The bits of e4m3, read as a number, are 8 (log2(x) + 7) at powers of two and run straight between
// them: 120 is 2^8, 126 the largest number, 448.
inline constexpr float kCodesPerOctave = 8.0f;
inline constexpr float kLargestCode = 126.0f;
inline constexpr float kFirstCode = 120.0f;  // of the largest weight of a row

// The bits of 2^x in e4m3, 0 where x is too small, in the lowest byte of the result. x is the
// fraction of kLargestCode that the bits are: (8 log2(weight) + 56) / 126. Reading a straight line
// as a power of two (Schraudolph 1999) makes a weight up to 6 % too large, 4 % on average; the
// average goes away when the output is divided by the sum, and what stays, 1.9 %, is less than what
// rounding to four bits adds, 2.6 %.
__device__ __forceinline__ uint32_t weight_code(float score, float factor, float offset) {
  constexpr float kRoundToInteger = 12582912.0f;  // 1.5 * 2^23: behind it only integers remain
  const float fraction = __saturatef(score * factor + offset);
  return __float_as_uint(fraction * kLargestCode + kRoundToInteger);
}

inline constexpr int kFp8SumRows = 8;  // rows of ones behind V transposed; wgmma takes 8 at least

struct Fp8WarpgroupAttention {
  float scores[kFp8TileKeys / 2];
  uint32_t code_pairs[kFp8TileKeys / 4];  // of two neighbouring columns
  uint32_t weights[kFp8TileKeys / 8];     // e4m3: operand A of the second product
  // Weights . values of one tile of keys, and the weights' sums, the same in columns 0 and 1. They
  // are added to `output` in float32, because the tensor cores lose more the longer they add.
  float part[kFp8HeadDim / 2];
  float part_sums[4];
  float output[kFp8HeadDim / 2];
  float row_sum[2];
  float row_max[2];          // of raw products, the same in the four lanes of a row
  float part_correction[2];  // what output is multiplied with before `part` is added
  float correction[2];       // the same for the tile after it, whose weights are there
  float factor[2];           // of raw products, to fractions of kLargestCode

  __device__ __forceinline__ void forget_maximum() { row_max[0] = row_max[1] = -INFINITY; }
  __device__ __forceinline__ void clear_output() {
#pragma unroll
    for (float& value : output) value = 0.0f;
#pragma unroll
    for (float& value : part) value = 0.0f;
#pragma unroll
    for (float& value : part_sums) value = 0.0f;
    row_sum[0] = row_sum[1] = 0.0f;
    part_correction[0] = part_correction[1] = 0.0f;
  }

  // Starts scores = Q . K^T.
  __device__ __forceinline__ void start_scores(const void* query_rows, const void* keys) {
    const auto query = MatrixDescriptor::of_rows(query_rows);
    const auto key = MatrixDescriptor::of_rows(keys);
    pin_registers(scores);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kFp8HeadDim / 32; ++step) {
      wgmma_fp8_shared(scores, query.advanced(step * 32), key.advanced(step * 32), step > 0);
    }
    wgmma_commit();
    pin_registers(scores);
  }

  // Starts part = weights . V and part_sums = weights . 1. `values`: V transposed and, behind its
  // kFp8HeadDim rows, kFp8SumRows of ones.
  __device__ __forceinline__ void start_part(const void* values) {
    const auto value = MatrixDescriptor::of_rows(values);
    part_correction[0] = correction[0];
    part_correction[1] = correction[1];
    pin_registers(weights);
    pin_registers(part);
    pin_registers(part_sums);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kFp8TileKeys / 32; ++step) {
      wgmma_fp8_registers(part, part_sums, weights + 4 * step, value.advanced(step * 32), step > 0);
    }
    wgmma_commit();
    pin_registers(part);
    pin_registers(part_sums);
  }

  // Hides the keys from end[half] on, counted from the tile's first.
  __device__ __forceinline__ void mask(const int (&end)[2]) {
    const int first_column = reread_lane_index() % 4 * 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int high = end[half] - first_column;
#pragma unroll
      for (int n = 0; n < kFp8TileKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          if (n * 8 + i >= high) scores[4 * n + 2 * half + i] = -INFINITY;
        }
      }
    }
  }

  // The largest score of each row, or row_max where that is larger. Both rows take turns, with four
  // partial maxima each, since every maximum of a chain waits for the one before it.
  __device__ __forceinline__ void find_maxima(float (&maxima)[2]) const {
    constexpr int kPartial = 4;
    float partial[2][kPartial];
#pragma unroll
    for (int n = 0; n < kFp8TileKeys / 8; ++n) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float larger = fmaxf(scores[4 * n + 2 * half], scores[4 * n + 2 * half + 1]);
        float& maximum = partial[half][n % kPartial];
        maximum = n < kPartial ? larger : fmaxf(maximum, larger);
      }
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      maxima[half] = fmaxf(row_max[half], fmaxf(fmaxf(partial[half][0], partial[half][1]),
                                                fmaxf(partial[half][2], partial[half][3])));
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) max_over_row(maxima[half]);
  }

  // Turns scores into pairs of codes relative to the new maximum, and says in `correction` what
  // that makes of the output so far. kMayBeEmpty: a row may have seen no key.
  template <bool kMayBeEmpty>
  __device__ __forceinline__ void update_softmax() {
    float maxima[2];
    find_maxima(maxima);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float new_max = maxima[half];
      const float reference = kMayBeEmpty && new_max == -INFINITY ? 0.0f : new_max;
      correction[half] = fast_exp2((row_max[half] - reference) *
                                   (factor[half] * (kLargestCode / kCodesPerOctave)));
      row_max[half] = new_max;
      const float offset = kFirstCode / kLargestCode - reference * factor[half];
#pragma unroll
      for (int n = 0; n < kFp8TileKeys / 8; ++n) {
        const float* const pair = scores + 4 * n + 2 * half;
        code_pairs[2 * n + half] = __byte_perm(weight_code(pair[0], factor[half], offset),
                                               weight_code(pair[1], factor[half], offset), 0x0040);
      }
    }
  }

  // Weights of k-step s, columns 32 s ...: registers for rows g, g + 8 of columns 8 (4 s) ..., then
  // of 8 (4 s + 2) ...; values stand in the order that this makes (prefill_fp8/arrange.h).
  __device__ __forceinline__ void take_weights() {
#pragma unroll
    for (int pair = 0; pair < kFp8TileKeys / 16; ++pair) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint32_t* const codes = code_pairs + 4 * pair + half;
        weights[2 * pair + half] = __byte_perm(codes[0], codes[2], 0x5410);
      }
    }
  }

  __device__ __forceinline__ void add_part() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row_sum[half] = row_sum[half] * part_correction[half] + part_sums[2 * half];
    }
#pragma unroll
    for (int i = 0; i < kFp8HeadDim / 2; ++i) {
      output[i] = output[i] * part_correction[i % 4 / 2] + part[i];
    }
  }

  // A value that depends on most codes, for compute_before_wait().
  __device__ __forceinline__ uint32_t last_codes() const {
    uint32_t any = 0;
#pragma unroll
    for (int n = 1; n < kFp8TileKeys / 8; n += 2) any |= code_pairs[2 * n] | code_pairs[2 * n + 1];
    return any;
  }
};

}  // namespace tessera
