// Blocks of a cluster read each other's shared memory (sm_90).
#pragma once

#include <cstdint>

#include "kernels/cuda/async_copy.cuh"

namespace tessera {

// The cluster's barrier, in two halves. What threads wrote before they arrive, others see after
// they waited. Threads that have exited do not count.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Four floats at this address in the shared memory of the cluster's block `rank`.
__device__ inline float4 load_from_cluster(const float4* shared, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(shared)), "r"(rank));
  float4 value;
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

}  // namespace tessera
