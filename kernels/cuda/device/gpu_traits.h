// What one GPU is, as far as kernels are chosen by it: plain numbers, so that every choice is
// tested without a GPU.
#pragma once

#include <cstdint>

#include "kernels/kernel_choice.h"

namespace tessera {

struct GpuTraits {
  int index = 0;               // as CUDA counts the GPUs
  int compute_capability = 0;  // 90 for 9.0
  int num_multiprocessors = 0;
  int64_t shared_bytes = 0;        // of shared memory, that a block may have
  bool hopper_code_built = false;  // this binary has code for sm_90a
  KernelChoice choice = KernelChoice::kFastest;

  constexpr bool is_batch_invariant() const { return choice == KernelChoice::kBatchInvariant; }

  // Code for sm_90a runs on 9.0 alone, not on what came after.
  constexpr bool runs_hopper() const {
    return compute_capability == 90 && hopper_code_built && choice != KernelChoice::kPortable;
  }
};

// The GPU of that index, as the driver describes it.
GpuTraits gpu_traits(int index, KernelChoice choice = KernelChoice::kFastest);

}  // namespace tessera
