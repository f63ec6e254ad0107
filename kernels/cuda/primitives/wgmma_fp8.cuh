// Tensor-core products of a warpgroup with float8_e4m3 inputs: D[64, N] += A[64, 32] . B^T, B
// [N, 32], float32 sums (wgmma, sm_90a); otherwise as in primitives/wgmma.cuh.
//
// Operands in shared memory are rows whose 32 elements (bytes) are contiguous; 128 of them are a
// row of the 128-byte swizzle. Lane l holds, with g = l / 4 and t = l % 4:
//   D  as in primitives/wgmma.cuh
//   A  4 registers of four elements: rows g, g + 8, g, g + 8; columns 4 t ... 4 t + 3 (first two),
//      16 + 4 t ... 16 + 4 t + 3
//
// The adders keep about 13 bits below the largest term. A sum that runs over many products loses
// what lies below, always towards zero: sums of more than some hundred terms belong into float32.
#pragma once

#include <cuda_fp8.h>

#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

// Four floats as e4m3, `a` in the lowest byte; beyond +-448 they become +-448.
__device__ __forceinline__ uint32_t pack_e4m3(float a, float b, float c, float d) {
  const uint32_t low = __nv_cvt_float2_to_fp8x2({a, b}, __NV_SATFINITE, __NV_E4M3);
  const uint32_t high = __nv_cvt_float2_to_fp8x2({c, d}, __NV_SATFINITE, __NV_E4M3);
  return low | high << 16;
}

// clang-format off
#define TESSERA_SUMS_64 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31" \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47" \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TESSERA_OPERANDS_8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
  "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TESSERA_OPERANDS_64 TESSERA_OPERANDS_8(0), TESSERA_OPERANDS_8(8), TESSERA_OPERANDS_8(16), \
  TESSERA_OPERANDS_8(24), TESSERA_OPERANDS_8(32), TESSERA_OPERANDS_8(40), TESSERA_OPERANDS_8(48), \
  TESSERA_OPERANDS_8(56)
// clang-format on

// N = 128, A from shared memory: d = a . b^T, or d += with `accumulate`.
__device__ __forceinline__ void wgmma_fp8_shared(float (&d)[64], uint64_t a, uint64_t b,
                                                 bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %66, 0; "
      "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" TESSERA_SUMS_64
      "}, %64, %65, p, 1, 1; }"
      : TESSERA_OPERANDS_64
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}

// N = 136, A from registers: columns 0 to 127 of the result in d, 128 to 135 in `last`.
__device__ __forceinline__ void wgmma_fp8_registers(float (&d)[64], float (&last)[4],
                                                    const uint32_t* a, uint64_t b,
                                                    bool accumulate) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %73, 0; "
      "wgmma.mma_async.sync.aligned.m64n136k32.f32.e4m3.e4m3 {" TESSERA_SUMS_64
      ", %64, %65, %66, %67}, {%68, %69, %70, %71}, %72, p, 1, 1; }"
      : TESSERA_OPERANDS_64, "+f"(last[0]), "+f"(last[1]), "+f"(last[2]), "+f"(last[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
}

#undef TESSERA_SUMS_64
#undef TESSERA_OPERANDS_8
#undef TESSERA_OPERANDS_64

}  // namespace tessera
