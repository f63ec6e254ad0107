// Warpgroups of a block that take turns.
#pragma once

#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

// The warpgroups take turns at starting products, so that one computes its softmax while another
// uses the tensor cores. Turn w is a barrier of warpgroup w, which waits, and the one before it.
template <int kWarpgroups>
struct WarpgroupTurns {
  int warpgroup;

  __device__ static void arrive(int turn) {
    asm volatile("bar.arrive %0, %1;" ::"r"(1 + turn), "n"(2 * kWarpgroupSize) : "memory");
  }
  __device__ void begin() const {
    if (warpgroup == kWarpgroups - 1) arrive(0);
  }
  __device__ void wait() const {
    asm volatile("bar.sync %0, %1;" ::"r"(1 + warpgroup), "n"(2 * kWarpgroupSize) : "memory");
  }
  __device__ void pass_on() const { arrive(warpgroup == kWarpgroups - 1 ? 0 : warpgroup + 1); }
  // All warpgroups.
  __device__ static void synchronize() {
    asm volatile("bar.sync %0, %1;" ::"n"(1 + kWarpgroups), "n"(kWarpgroups * kWarpgroupSize)
                 : "memory");
  }
};

}  // namespace tessera
