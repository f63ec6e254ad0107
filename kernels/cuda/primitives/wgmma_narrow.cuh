// Products of other widths than primitives/wgmma.cuh has, for tiles whose rows are no multiple
// of 64.
#pragma once

#include "kernels/cuda/primitives/wgmma.cuh"

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
#define TESSERA_WGMMA_80(type) \
  asm volatile( \
      "{ .reg .pred p; setp.ne.b32 p, %42, 0; " \
      "wgmma.mma_async.sync.aligned.m64n80k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13" \
      ", %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27" \
      ", %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39" \
      "}, %40, %41, p, 1, 1, 0, 0; }" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]) \
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))
#define TESSERA_WGMMA_112(type) \
  asm volatile( \
      "{ .reg .pred p; setp.ne.b32 p, %58, 0; " \
      "wgmma.mma_async.sync.aligned.m64n112k16.f32." type "." type " {" \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13" \
      ", %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27" \
      ", %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41" \
      ", %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55" \
      "}, %56, %57, p, 1, 1, 0, 0; }" \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), \
        "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), \
        "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), \
        "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), \
        "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), \
        "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), \
        "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]) \
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

// With 80.
template <typename Element>
__device__ __forceinline__ void wgmma_rows_80(float (&d)[40], uint64_t a, uint64_t b,
                                              bool accumulate) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    TESSERA_WGMMA_80("bf16");
  } else {
    TESSERA_WGMMA_80("f16");
  }
}

// With 112.
template <typename Element>
__device__ __forceinline__ void wgmma_rows_112(float (&d)[56], uint64_t a, uint64_t b,
                                               bool accumulate) {
  if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
    TESSERA_WGMMA_112("bf16");
  } else {
    TESSERA_WGMMA_112("f16");
  }
}

#undef TESSERA_WGMMA_32
#undef TESSERA_WGMMA_80
#undef TESSERA_WGMMA_112

// d = a . b^T, or d += with `accumulate`, for kRows rows of B, 80, 112 or a multiple of 32 up to
// 256, of which eight take kGroupBytes; as few products as that takes. Like wgmma_rows(), of which
// this is several.
template <typename Element, int kRows, int kGroupBytes>
__device__ __forceinline__ void wgmma_all_rows(float* d, uint64_t a, MatrixDescriptor b,
                                               int b_bytes, bool accumulate) {
  constexpr int kProductRows = kRows >= 128                  ? 128
                               : kRows == 112 || kRows == 80 ? kRows
                               : kRows >= 64                 ? 64
                                                             : 32;
  auto& sums = *reinterpret_cast<float(*)[kProductRows / 2]>(d);
  if constexpr (kProductRows == 32) {
    wgmma_rows_32<Element>(sums, a, b.advanced(b_bytes), accumulate);
  } else if constexpr (kProductRows == 80) {
    wgmma_rows_80<Element>(sums, a, b.advanced(b_bytes), accumulate);
  } else if constexpr (kProductRows == 112) {
    wgmma_rows_112<Element>(sums, a, b.advanced(b_bytes), accumulate);
  } else {
    wgmma_rows<Element>(sums, a, b.advanced(b_bytes), accumulate);
  }
  if constexpr (kRows > kProductRows) {
    wgmma_all_rows<Element, kRows - kProductRows, kGroupBytes>(
        d + kProductRows / 2, a, b, b_bytes + kProductRows / 8 * kGroupBytes, accumulate);
  }
}

}  // namespace tessera
