// A new token's key or value of one KV head, which a warp of the fused decode kernel has in
// registers before it is in the KV pages: that of the piece's own token, which is the newest one
// that the token sees, or that of a token before it in the same step (earlier_rows.cuh).
#pragma once

#include "kernels/cuda/decode_step/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/cuda/primitives/panels.h"
#include "kernels/cuda/primitives/wgmma_fp8.cuh"

namespace tessera {

// 1 / scale. Scale is a power of two; neither it nor its inverse is 0 or subnormal.
__device__ inline float inverse_power(float scale) {
  return __uint_as_float(0x7f000000u - __float_as_uint(scale));
}

// A lane has the four elements from 4 lane on; of a wide head it has four more, kElements further
// on. Of a narrow head half of the lanes have none.
template <int kHeadDim, bool kFp8>
struct NewestRow {
  static constexpr int kElements = 4 * kWarpSize;
  static constexpr int kVectors = (kHeadDim + kElements - 1) / kElements;
  static constexpr int kUnitTokens = unit_tokens(kHeadDim, kFp8 ? 1 : 2);

  uint2 vectors[kVectors];  // of bfloat16 two pairs; of e4m3 four elements in x

  // Takes four floats as words, multiplies them by `scale` and rounds them. kv_scale: what stored
  // e4m3 elements are multiplied with.
  __device__ void take(int i, const uint4& words, float scale, [[maybe_unused]] float kv_scale) {
    const auto times = [&](uint32_t word) { return __uint_as_float(word) * scale; };
    vectors[i] = make_uint2(pack_pair<__nv_bfloat16>(times(words.x), times(words.y)),
                            pack_pair<__nv_bfloat16>(times(words.z), times(words.w)));
    if constexpr (kFp8) {
      const float inverse = inverse_power(kv_scale);
      const auto low = [&](uint32_t pair) { return low_bfloat16(pair) * inverse; };
      const auto high = [&](uint32_t pair) { return high_bfloat16(pair) * inverse; };
      vectors[i].x =
          pack_e4m3(low(vectors[i].x), high(vectors[i].x), low(vectors[i].y), high(vectors[i].y));
    }
  }

  // Stores the row in its page.
  __device__ void store(__nv_bfloat16* pages, int64_t row) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int column = i * kElements + reread_lane_index() * 4;
      if (column >= kHeadDim) break;
      if constexpr (kFp8) {
        reinterpret_cast<uint32_t*>(pages)[(row * kHeadDim + column) / 4] = vectors[i].x;
      } else {
        *reinterpret_cast<uint2*>(pages + row * kHeadDim + column) = vectors[i];
      }
    }
  }

  // Writes the row into the unit, in which it is that of token `token`.
  __device__ void write_row(uint32_t unit, int token) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int column = i * kElements + reread_lane_index() * 4;
      if (column >= kHeadDim) break;
      store_shared(place(unit, token, column), vectors[i].x, vectors[i].y);
    }
  }

  // The copy of a unit may have read the newest token's row before it was written. So this writes
  // the row into the unit again, and zeros into the rows behind it, which may hold NaN.
  __device__ void write(uint32_t unit, int newest_token) const {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const int column = i * kElements + reread_lane_index() * 4;
      if (column >= kHeadDim) break;
      uint32_t low = vectors[i].x;
      uint32_t high = vectors[i].y;
#pragma unroll 1
      for (int token = newest_token; token < kUnitTokens; ++token) {
        store_shared(place(unit, token, column), low, high);
        low = high = 0;
      }
    }
    __syncwarp();
  }

 private:
  // Where the unit, which the copy engine leaves in panels, has the elements of a token from
  // `column` on.
  __device__ static uint32_t place(uint32_t unit, int token, int column) {
    constexpr int kElementBytes = kFp8 ? 1 : 2;
    constexpr int kRowBytes = panel_row_bytes(kHeadDim * kElementBytes);
    const auto byte = static_cast<uint32_t>(column * kElementBytes);
    const auto row = static_cast<uint32_t>(token);
    return unit + byte / kRowBytes * (kUnitTokens * kRowBytes) + row * kRowBytes +
           (byte % kRowBytes / 16 ^ panel_swizzle<kRowBytes>(row)) * 16 + byte % 16;
  }
  // Four elements: of e4m3 in `low`, of bfloat16 in both.
  __device__ static void store_shared(uint32_t address, uint32_t low, uint32_t high) {
    if constexpr (kFp8) {
      asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(low) : "memory");
    } else {
      asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(low), "r"(high)
                   : "memory");
    }
  }
};

}  // namespace tessera
