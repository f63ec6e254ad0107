// Programmatic dependent launch (sm_90): a kernel starts while its predecessor in the stream ends.
#pragma once

namespace tessera {

// Until this returns, the predecessor may still read and write memory. Lets the kernel launched
// next start its own first part as soon as there is room.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace tessera
