// Tensor-core products of a warpgroup, four warps of which the first has an index divisible by
// four: D[64, N] += A[64, 16] . B[16, N], 16-bit inputs, float32 sums (wgmma, sm_90a). B, and A
// unless it comes from registers, are read from shared memory as the copy engine's 128-byte swizzle
// leaves them: panels of 64 columns, rows of 128 bytes (device/tensor_map.h).
//
// Warp w of the group holds rows 16 w ... 16 w + 15. Lane l holds, with g = l / 4 and t = l % 4:
//   D  N / 2 floats: for column tile n, [4 n .. 4 n + 3] are rows g, g, g + 8, g + 8, columns
//      8 n + 2 t, 8 n + 2 t + 1, and the same again
//   A  4 registers of two elements: rows g, g + 8, g, g + 8; columns 2 t, 2 t + 1 (first two),
//      2 t + 8, 2 t + 9. So the sums of two column tiles, rounded, are an A operand as they are.
//
// Products run asynchronously: fence, products, commit, wait. Until the wait, nobody may touch the
// sums or write A's registers.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <type_traits>

#include "kernels/cuda/primitives/async_copy.cuh"

namespace tessera {

inline constexpr int kWarpgroupSize = 128;
inline constexpr int kWarpgroupRows = 64;  // of A and D
inline constexpr int kPanelColumns = 64;   // 128 bytes
inline constexpr int kPanelRowBytes = 128;

// Orders the registers that a product will read or write behind what was done with them before.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
// Waits until at most kPending committed groups are unfinished.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}
// Keeps the compiler from moving uses of these registers across the place of the call.
template <int kCount>
__device__ __forceinline__ void pin_registers(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin_registers(uint32_t (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

// Where an operand lies in shared memory; PTX ISA, "matrix descriptor". Addresses and strides are
// stored in units of 16 bytes, so adding b bytes to the address is adding b / 16 to the number.
class MatrixDescriptor {
 public:
  // Rows of A or B^T: 64 (or N) rows whose 16 columns are contiguous. Eight rows are 1024 bytes;
  // the next eight follow, or lie group_bytes after the first.
  __device__ static MatrixDescriptor of_rows(const void* shared,
                                             int group_bytes = 8 * kPanelRowBytes) {
    return MatrixDescriptor(shared, 1, group_bytes);
  }
  // Rows of B: 16 rows of N columns; the next panel of 64 columns lies panel_bytes further. Of the
  // last panel N may take a part.
  __device__ static MatrixDescriptor of_columns(const void* shared, int panel_bytes) {
    return MatrixDescriptor(shared, panel_bytes, 8 * kPanelRowBytes);
  }
  __device__ uint64_t advanced(int bytes) const {
    return bits_ + static_cast<uint64_t>(bytes / 16);
  }

 private:
  __device__ MatrixDescriptor(const void* shared, int leading_bytes, int stride_bytes)
      : bits_(static_cast<uint64_t>((shared_address(shared) & 0x3ffff) >> 4) |
              static_cast<uint64_t>(leading_bytes / 16) << 16 |
              static_cast<uint64_t>(stride_bytes / 16) << 32 | uint64_t{1} << 62) {}

  uint64_t bits_;
};

// The N / 2 sums of a lane for the assembler: as numbers in the text, and as operands.
// clang-format off
#define TESSERA_SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15" \
  ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define TESSERA_SUMS_48 \
  TESSERA_SUMS_32 \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define TESSERA_SUMS_64 \
  TESSERA_SUMS_48 \
  ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define TESSERA_SUMS_96 \
  TESSERA_SUMS_64 \
  ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79" \
  ", %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define TESSERA_SUMS_112 \
  TESSERA_SUMS_96 \
  ", %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111"
#define TESSERA_SUMS_128 \
  TESSERA_SUMS_112 \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define TESSERA_OPERANDS_8(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), \
  "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define TESSERA_OPERANDS_AT(d, i) TESSERA_OPERANDS_8(d, i), TESSERA_OPERANDS_8(d, i + 8), \
  TESSERA_OPERANDS_8(d, i + 16), TESSERA_OPERANDS_8(d, i + 24)
#define TESSERA_OPERANDS_32(d) TESSERA_OPERANDS_AT(d, 0)
#define TESSERA_OPERANDS_48(d) TESSERA_OPERANDS_32(d), TESSERA_OPERANDS_8(d, 32), \
  TESSERA_OPERANDS_8(d, 40)
#define TESSERA_OPERANDS_64(d) TESSERA_OPERANDS_32(d), TESSERA_OPERANDS_AT(d, 32)
#define TESSERA_OPERANDS_96(d) TESSERA_OPERANDS_64(d), TESSERA_OPERANDS_AT(d, 64)
#define TESSERA_OPERANDS_112(d) TESSERA_OPERANDS_96(d), TESSERA_OPERANDS_8(d, 96), \
  TESSERA_OPERANDS_8(d, 104)
#define TESSERA_OPERANDS_128(d) TESSERA_OPERANDS_112(d), TESSERA_OPERANDS_8(d, 112), \
  TESSERA_OPERANDS_8(d, 120)
// clang-format on

// d = a . b^T, or d += with `accumulate`: A from shared memory, rows; B from shared memory, rows.
#define TESSERA_WGMMA_ROWS(N, half, type, p0, p1, p2)                          \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, " p2                            \
               ", 0; "                                                         \
               "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type \
               " {" TESSERA_SUMS_##half "}, " p0 ", " p1 ", p, 1, 1, 0, 0; }"  \
               : TESSERA_OPERANDS_##half(d)                                    \
               : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)))

// d = a . b, or d += with `accumulate`: A from registers; B from shared memory, columns.
#define TESSERA_WGMMA_COLUMNS(N, half, type, p0, p1, p2, p3, p4, p5)                           \
  asm volatile(                                                                                \
      "{ .reg .pred p; setp.ne.b32 p, " p5                                                     \
      ", 0; "                                                                                  \
      "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type " {" TESSERA_SUMS_##half \
      "}, {" p0 ", " p1 ", " p2 ", " p3 "}, " p4 ", p, 1, 1, 1; }"                             \
      : TESSERA_OPERANDS_##half(d)                                                             \
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)))

// D's number of columns N is twice the number of sums.
template <typename Element, int kSums>
__device__ __forceinline__ void wgmma_rows(float (&d)[kSums], uint64_t a, uint64_t b,
                                           bool accumulate) {
  constexpr bool kIsBFloat16 = std::is_same_v<Element, __nv_bfloat16>;
  if constexpr (kSums == 128 && kIsBFloat16) {
    TESSERA_WGMMA_ROWS(256, 128, "bf16", "%128", "%129", "%130");
  } else if constexpr (kSums == 128) {
    TESSERA_WGMMA_ROWS(256, 128, "f16", "%128", "%129", "%130");
  } else if constexpr (kSums == 112 && kIsBFloat16) {
    TESSERA_WGMMA_ROWS(224, 112, "bf16", "%112", "%113", "%114");
  } else if constexpr (kSums == 112) {
    TESSERA_WGMMA_ROWS(224, 112, "f16", "%112", "%113", "%114");
  } else if constexpr (kSums == 96 && kIsBFloat16) {
    TESSERA_WGMMA_ROWS(192, 96, "bf16", "%96", "%97", "%98");
  } else if constexpr (kSums == 96) {
    TESSERA_WGMMA_ROWS(192, 96, "f16", "%96", "%97", "%98");
  } else if constexpr (kSums == 64 && kIsBFloat16) {
    TESSERA_WGMMA_ROWS(128, 64, "bf16", "%64", "%65", "%66");
  } else if constexpr (kSums == 64) {
    TESSERA_WGMMA_ROWS(128, 64, "f16", "%64", "%65", "%66");
  } else if constexpr (kSums == 32 && kIsBFloat16) {
    TESSERA_WGMMA_ROWS(64, 32, "bf16", "%32", "%33", "%34");
  } else {
    static_assert(kSums == 32);
    TESSERA_WGMMA_ROWS(64, 32, "f16", "%32", "%33", "%34");
  }
}

template <typename Element, int kSums>
__device__ __forceinline__ void wgmma_columns(float (&d)[kSums], const uint32_t* a, uint64_t b,
                                              bool accumulate) {
  constexpr bool kIsBFloat16 = std::is_same_v<Element, __nv_bfloat16>;
  if constexpr (kSums == 128 && kIsBFloat16) {
    TESSERA_WGMMA_COLUMNS(256, 128, "bf16", "%128", "%129", "%130", "%131", "%132", "%133");
  } else if constexpr (kSums == 128) {
    TESSERA_WGMMA_COLUMNS(256, 128, "f16", "%128", "%129", "%130", "%131", "%132", "%133");
  } else if constexpr (kSums == 64 && kIsBFloat16) {
    TESSERA_WGMMA_COLUMNS(128, 64, "bf16", "%64", "%65", "%66", "%67", "%68", "%69");
  } else if constexpr (kSums == 64) {
    TESSERA_WGMMA_COLUMNS(128, 64, "f16", "%64", "%65", "%66", "%67", "%68", "%69");
  } else if constexpr (kSums == 48 && kIsBFloat16) {
    TESSERA_WGMMA_COLUMNS(96, 48, "bf16", "%48", "%49", "%50", "%51", "%52", "%53");
  } else if constexpr (kSums == 48) {
    TESSERA_WGMMA_COLUMNS(96, 48, "f16", "%48", "%49", "%50", "%51", "%52", "%53");
  } else if constexpr (kSums == 32 && kIsBFloat16) {
    TESSERA_WGMMA_COLUMNS(64, 32, "bf16", "%32", "%33", "%34", "%35", "%36", "%37");
  } else {
    static_assert(kSums == 32);
    TESSERA_WGMMA_COLUMNS(64, 32, "f16", "%32", "%33", "%34", "%35", "%36", "%37");
  }
}

#undef TESSERA_WGMMA_ROWS
#undef TESSERA_WGMMA_COLUMNS
#undef TESSERA_SUMS_32
#undef TESSERA_SUMS_48
#undef TESSERA_SUMS_64
#undef TESSERA_SUMS_96
#undef TESSERA_SUMS_112
#undef TESSERA_SUMS_128
#undef TESSERA_OPERANDS_8
#undef TESSERA_OPERANDS_AT
#undef TESSERA_OPERANDS_32
#undef TESSERA_OPERANDS_48
#undef TESSERA_OPERANDS_64
#undef TESSERA_OPERANDS_96
#undef TESSERA_OPERANDS_112
#undef TESSERA_OPERANDS_128

}  // namespace tessera
