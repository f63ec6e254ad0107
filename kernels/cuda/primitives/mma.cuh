// Tensor-core products of one warp: D[16, 8] += A[16, 16] . B[16, 8], 16-bit inputs, float32 sums
// (mma.sync m16n8k16, sm_80), and the loads that fill its operands from shared memory.
//
// Lane l holds, with g = l / 4 and t = l % 4:
//   A  4 registers: rows g, g + 8, g, g + 8; columns 2t, 2t + 1 (first two), 2t + 8, 2t + 9
//   B  2 registers: column g; rows 2t, 2t + 1 and 2t + 8, 2t + 9
//   D  4 floats: rows g, g, g + 8, g + 8; columns 2t, 2t + 1, 2t, 2t + 1
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/cuda/primitives/async_copy.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"

namespace tessera {

template <typename Element>
__device__ void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);

template <>
__device__ inline void multiply_add<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4],
                                                   uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <>
__device__ inline void multiply_add<__half>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                            uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Two floats as one register of 16-bit elements, `low` in the low half.
template <typename Element>
__device__ uint32_t pack_pair(float low, float high);
template <>
__device__ inline uint32_t pack_pair<__nv_bfloat16>(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
template <>
__device__ inline uint32_t pack_pair<__half>(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}

// The elements of a pair of bfloat16.
__device__ inline float low_bfloat16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_bfloat16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Of the four lanes that share a row of a result, each gets what all four have together.
__device__ inline void max_over_row(float& largest) {
  largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 1));
  largest = fmaxf(largest, __shfl_xor_sync(kFullWarp, largest, 2));
}
__device__ inline void sum_over_row(float& sum) {
  sum += __shfl_xor_sync(kFullWarp, sum, 1);
  sum += __shfl_xor_sync(kFullWarp, sum, 2);
}
// The same of the eight lanes that share a column.
template <typename Operation>
__device__ float reduce_column(float value, Operation operation) {
#pragma unroll
  for (int distance = 4; distance < kWarpSize; distance *= 2) {
    value = operation(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}
__device__ inline void max_over_column(float& largest) {
  largest = reduce_column(largest, [](float a, float b) { return fmaxf(a, b); });
}
__device__ inline void sum_over_column(float& sum) {
  sum = reduce_column(sum, [](float a, float b) { return a + b; });
}

// Loads four 8 x 8 matrices of 16-bit elements. Lane l gives the address of row l % 8 of matrix
// l / 8 and receives from each matrix elements 2t, 2t + 1 of row g.
__device__ inline void load_matrices(uint32_t (&registers)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row_address)
               : "memory");
}
__device__ inline void load_matrices(uint32_t (&registers)[4], const void* row) {
  load_matrices(registers, shared_address(row));
}

// The same, each matrix transposed: the lane receives elements g of rows 2t, 2t + 1.
__device__ inline void load_matrices_transposed(uint32_t (&registers)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
               : "r"(row_address)
               : "memory");
}
__device__ inline void load_matrices_transposed(uint32_t (&registers)[4], const void* row) {
  load_matrices_transposed(registers, shared_address(row));
}

// Transposes an 8 x 8 matrix. Before and after, a lane has columns 2t and 2t + 1 of row g.
__device__ inline uint32_t transpose_matrix(uint32_t pair) {
  uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(pair));
  return result;
}

}  // namespace tessera
