// The blocks that sample one sequence: a cluster of kBlocks (sm_90), which read and write each
// other's shared memory; or one block alone.
#pragma once

#include <cstdint>

#include "kernels/cuda/primitives/block_reduce.cuh"

namespace tessera {

// Code for GPUs without clusters has the kernels of several blocks too; nobody launches them there.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
inline constexpr bool kHasClusters = false;
#else
inline constexpr bool kHasClusters = true;
#endif

template <int kBlocks>
struct SamplingCluster {
  static constexpr bool kIsCluster = kBlocks > 1 && kHasClusters;

  __device__ static int rank() { return kBlocks == 1 ? 0 : static_cast<int>(blockIdx.x) % kBlocks; }

  // A barrier over all threads, in two halves. What was written to shared memory before arriving
  // is seen after waiting.
  __device__ static void arrive() {
    __syncwarp();  // whole warps arrive
    if constexpr (kIsCluster) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  }
  __device__ static void wait() {
    if constexpr (kIsCluster) {
      asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
    } else {
      __syncthreads();
    }
  }
  __device__ static void sync() {
    arrive();
    wait();
  }

  // The same variable in shared memory of block `rank`.
  template <typename T>
  __device__ static T* in_block(T* shared, int rank) {
    if constexpr (kIsCluster) {
      asm("mapa.u64 %0, %1, %2;" : "=l"(shared) : "l"(shared), "r"(rank));
    }
    return shared;
  }

  // A value per warp of all blocks, in order of rank: writes the warp's own into all blocks'
  // `values`, where all are after sync(). Called by whole warps; all lanes have the value.
  template <int kCount>
  __device__ static void send(uint64_t (&values)[kCount], int index, uint64_t value) {
    const auto to = static_cast<int>(threadIdx.x) % kWarpSize;
    if (to < kBlocks) *in_block(&values[rank() * (kCount / kBlocks) + index], to) = value;
    __syncwarp();
  }
};

}  // namespace tessera
