// Reductions and scans over a thread block, in an order that depends on nothing but the block size.
// Every thread of the block must call them; the block is a whole number of warps.
#pragma once

#include <cstdint>

namespace tessera {

inline constexpr int kWarpSize = 32;
inline constexpr int kMaxWarps = 32;
inline constexpr uint32_t kFullWarp = 0xffffffffu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % kWarpSize; }
// The same, read anew at each call, so that nothing computed from it stays in registers for long.
__device__ inline int reread_lane_index() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  __builtin_assume(lane >= 0 && lane < kWarpSize);
  return lane;
}
__device__ inline int reread_thread_index() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  __builtin_assume(thread >= 0 && thread < kMaxWarps * kWarpSize);
  return thread;
}
__device__ inline int reread_warp_index() { return reread_thread_index() / kWarpSize; }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / kWarpSize; }

// operation(a, b) over the warp's values; every lane gets the result.
template <typename T, typename Operation>
__device__ T warp_reduce(T value, Operation operation) {
#pragma unroll
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(kFullWarp, value, distance));
  }
  return value;
}

// operation(a, b) over the block's values; every thread gets the result.
template <typename T, typename Operation>
__device__ T block_reduce(T value, Operation operation) {
  __shared__ T partial[kMaxWarps];
  value = warp_reduce(value, operation);
  __syncthreads();  // the call before this one may still be reading
  if (lane_index() == 0) partial[warp_index()] = value;
  __syncthreads();
  T result = partial[0];
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  for (int warp = 1; warp < num_warps; ++warp) result = operation(result, partial[warp]);
  return result;
}

template <typename T>
__device__ T block_sum(T value) {
  return block_reduce(value, [](T a, T b) { return a + b; });
}

struct BlockScan {
  uint64_t before;  // sum of the values of lower threads
  uint64_t total;   // sum over the block
};

__device__ inline BlockScan block_scan(uint64_t value) {
  __shared__ uint64_t warp_totals[kMaxWarps];
  uint64_t inclusive = value;
#pragma unroll
  for (int distance = 1; distance < kWarpSize; distance *= 2) {
    const uint64_t lower = __shfl_up_sync(kFullWarp, inclusive, distance);
    if (lane_index() >= distance) inclusive += lower;
  }
  __syncthreads();  // the call before this one may still be reading
  if (lane_index() == kWarpSize - 1) warp_totals[warp_index()] = inclusive;
  __syncthreads();
  BlockScan scan{inclusive - value, 0};
  const int num_warps = static_cast<int>(blockDim.x) / kWarpSize;
  for (int warp = 0; warp < num_warps; ++warp) {
    if (warp < warp_index()) scan.before += warp_totals[warp];
    scan.total += warp_totals[warp];
  }
  return scan;
}

}  // namespace tessera
