// What attention over keys and values in e4m3 needs to compute in products of float16, which holds
// every number of e4m3 exactly. One instruction makes two float16 of two e4m3 bytes; for bfloat16
// it would take five.
#pragma once

#include <cuda_fp8.h>

#include "kernels/cuda/primitives/mma.cuh"

namespace tessera {

// Two e4m3 numbers as two of float16.
__device__ inline uint32_t widen_pair(uint32_t two_bytes) {
  const __half2_raw pair =
      __nv_cvt_fp8x2_to_halfraw2(static_cast<__nv_fp8x2_storage_t>(two_bytes), __NV_E4M3);
  return reinterpret_cast<const uint32_t&>(pair);
}

// Weights are multiplied by 2^7, so that float16 does not lose the many small weights of a long
// context. It then holds weights down to 2^-31 of the largest one, which stays below 2^15.
inline constexpr int kFp8WeightShift = 7;

// The larger magnitude of a pair of bfloat16.
__device__ inline float largest_of_pair(uint32_t pair) {
  return fmaxf(fabsf(low_bfloat16(pair)), fabsf(high_bfloat16(pair)));
}

// How a row of queries in bfloat16 becomes one in float16: multiplied by a power of two that brings
// its largest element below 2^15. Then float16 holds everything down to 2^-31 of the largest
// element in 8 bits or more: nothing that a sum in float32 could show is lost.
struct QueryNarrowing {
  int shift;

  // largest: the largest magnitude of the row.
  __device__ explicit QueryNarrowing(float largest) {
    const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 127;
    shift = min(14 - exponent, 112);
  }

  __device__ uint32_t narrow(uint32_t pair) const {
    const float factor = __uint_as_float(static_cast<uint32_t>(127 + shift) << 23);
    return pack_pair<__half>(low_bfloat16(pair) * factor, high_bfloat16(pair) * factor);
  }
  __device__ float undo() const {
    return __uint_as_float(static_cast<uint32_t>(127 - shift) << 23);
  }
};

}  // namespace tessera
