// Barriers in shared memory on which copies and threads signal each other (mbarrier, sm_80;
// announced bytes, sm_90).
//
// A barrier completes a phase when `count` arrivals and all announced bytes have come; phases
// alternate between parity 0 and 1, starting with 0. Waiting for parity 1 on a new barrier returns
// at once: that is how a producer finds an unused buffer empty.
#pragma once

#include <cstdint>
#include <cstdio>

#include "kernels/cuda/primitives/async_copy.cuh"

namespace tessera {

__device__ inline void mbarrier_init(uint64_t* barrier, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}

// After the inits of one thread, before a block barrier: the copy engine sees the new barriers.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Barriers may be given by their addresses, which a kernel keeps where it has a register for them.
__device__ inline void mbarrier_arrive(uint32_t address) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(address) : "memory");
}
__device__ inline void mbarrier_arrive(uint64_t* barrier) {
  mbarrier_arrive(shared_address(barrier));
}

// Whether the kernels are built for compute-sanitizer's racecheck (-DTESSERA_RACECHECK=ON).
#ifdef TESSERA_RACECHECK
inline constexpr bool kForRacecheck = true;
#else
inline constexpr bool kForRacecheck = false;
#endif

// After __syncwarp(), one lane arrives at a barrier for its whole warp, because an arrival costs as
// much as a store. Racecheck does not see that __syncwarp() orders the other lanes' accesses before
// that arrival, and reports pairs of accesses that cannot meet. For it every lane arrives, and a
// barrier counts so many arrivals of a warp.
constexpr int warp_arrivals(int lanes = 32) { return kForRacecheck ? lanes : 1; }
__device__ inline bool arrives_for_warp(int lane) { return kForRacecheck || lane == 0; }

// Arrives and announces bytes that copies will bring in this phase.
__device__ inline void mbarrier_expect_bytes(uint64_t* barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

// Whether the phase of this parity is over.
__device__ inline bool mbarrier_test(uint32_t address, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(address), "r"(parity)
      : "memory");
  return done != 0;
}
__device__ inline bool mbarrier_test(uint64_t* barrier, uint32_t parity) {
  return mbarrier_test(shared_address(barrier), parity);
}

// The same, but may wait for a while, where the hardware can.
__device__ inline bool mbarrier_try_wait(uint32_t address, uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  uint32_t done;
  asm volatile(
      "{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(address), "r"(parity)
      : "memory");
  return done != 0;
#else
  return mbarrier_test(address, parity);
#endif
}

// Called after each try in vain. To find a hang, build with
// -DCMAKE_CUDA_FLAGS=-DTESSERA_WATCHDOG_TRIES=100000000: a wait that takes too long then names its
// barrier and stops the kernel. It slows the Hopper kernels (ptxas C7510).
__device__ inline void mbarrier_watch([[maybe_unused]] int64_t tries,
                                      [[maybe_unused]] uint32_t address,
                                      [[maybe_unused]] uint32_t parity) {
#ifdef TESSERA_WATCHDOG_TRIES
  if (tries < TESSERA_WATCHDOG_TRIES) return;
  std::printf("hang: block %d thread %d waits for parity %u of the barrier at %u\n",
              static_cast<int>(blockIdx.x), static_cast<int>(threadIdx.x), parity, address);
  __trap();
#endif
}

// Waits until the phase of this parity is over.
__device__ inline void mbarrier_wait(uint32_t address, uint32_t parity) {
  for (int64_t tries = 0; !mbarrier_try_wait(address, parity); ++tries) {
    mbarrier_watch(tries, address, parity);
  }
}
__device__ inline void mbarrier_wait(uint64_t* barrier, uint32_t parity) {
  mbarrier_wait(shared_address(barrier), parity);
}

}  // namespace tessera
