// Blocks of a cluster write to each other's shared memory (sm_90).
#pragma once

#include <cstdint>

#include "kernels/cuda/primitives/mbarrier.cuh"

// Of a kernel: blocks of its clusters. Compiled for older GPUs, where it never runs, a kernel must
// not ask for clusters.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define TESSERA_CLUSTER_OF(size) __cluster_dims__(size)
#else
#define TESSERA_CLUSTER_OF(size)
#endif

namespace tessera {

// The cluster's barrier, in two halves, for barriers that others set up before
// fence_barrier_init(). It does not say that what they wrote otherwise is seen.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where this address lies in the shared memory of the cluster's block `rank`.
__device__ inline uint32_t cluster_address(const void* shared, int rank) {
  uint32_t address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(address)
      : "r"(shared_address(shared)), "r"(rank));
  return address;
}

// Arrives at this barrier there. It does not order what the thread has read or written before: it
// says that asynchronous reads are over for whose end the thread has waited. With an order for the
// whole cluster (.release.cluster) it is a fence of the whole GPU, with which the gated product
// took 1.45 times as long (H100).
__device__ inline void mbarrier_arrive_in_cluster(uint64_t* barrier, int rank) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(cluster_address(barrier, rank))
               : "memory");
}

// Writes to this address there, and counts as 16 of the bytes that this barrier there expects.
// Unlike a store and a signal, of which the second must wait for the first through a fence of the
// whole GPU: up to 4 us while weights stream (H200).
__device__ inline void store_in_cluster(float4* shared, const float4& value, uint64_t* barrier,
                                        int rank) {
  asm volatile(
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
      "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(cluster_address(shared, rank)),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(cluster_address(barrier, rank))
      : "memory");
}

// mbarrier_wait(), and what store_in_cluster() brought from other blocks is seen.
__device__ inline void mbarrier_wait_for_cluster(uint64_t* barrier, uint32_t parity) {
  const auto is_over = [&] {
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2; "
        "selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
    return done != 0;
  };
  for (int64_t tries = 0; !is_over(); ++tries)
    mbarrier_watch(tries, shared_address(barrier), parity);
}

}  // namespace tessera
