// The narrow product that wgmma.cuh does not have, for tiles whose rows are no multiple of 64.
#pragma once

#include "kernels/cuda/wgmma.cuh"

namespace tessera {

// clang-format off
#define TESSERA_WGMMA_32(type) \
  asm volatile( \
      "{ .reg .pred p; setp.ne.b32 p, %18, 0; " \
      "wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type \
      " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}" \
      ", %16, %17, p, 1, 1, 0, 0; }" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), \
        "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), \
        "+f"(d[14]), "+f"(d[15]) \
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
// clang-format on

// wgmma_rows() with 32 columns.
template <typename Element>
__device__ __forceinline__ void wgmma_rows_32(float (&d)[16], uint64_t a, uint64_t b,
                                              bool accumulate) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    TESSERA_WGMMA_32("bf16");
  } else {
    TESSERA_WGMMA_32("f16");
  }
}

#undef TESSERA_WGMMA_32

// d = a . b^T, or d += with `accumulate`, for kRows rows of B, a multiple of 32 up to 256, as few
// products as that takes. Like wgmma_rows(), of which this is several.
template <typename Element, int kRows>
__device__ __forceinline__ void wgmma_all_rows(float* d, uint64_t a, MatrixDescriptor b,
                                               int b_bytes, bool accumulate) {
  constexpr int kProductRows = kRows >= 128 ? 128 : kRows >= 64 ? 64 : 32;
  auto& sums = *reinterpret_cast<float(*)[kProductRows / 2]>(d);
  if constexpr (kProductRows == 32) {
    wgmma_rows_32<Element>(sums, a, b.advanced(b_bytes), accumulate);
  } else {
    wgmma_rows<Element>(sums, a, b.advanced(b_bytes), accumulate);
  }
  if constexpr (kRows > kProductRows) {
    wgmma_all_rows<Element, kRows - kProductRows>(
        d + kProductRows / 2, a, b, b_bytes + kProductRows * kPanelRowBytes, accumulate);
  }
}

}  // namespace tessera
