// Programmatic dependent launch (sm_90): a kernel starts while its predecessor in the stream ends.
#pragma once

namespace tessera {

// Lets the kernel launched next start its own first part as soon as there is room.
__device__ inline void launch_next_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Until this returns, the predecessor may still read and write memory.
__device__ inline void wait_for_previous_results() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// What most kernels want: both at once.
__device__ inline void wait_for_previous_kernel() {
  launch_next_kernel();
  wait_for_previous_results();
}

// The other way round: when the next kernel starts, the predecessor's results are there, also for
// it.
__device__ inline void pass_on_previous_results() {
  wait_for_previous_results();
  launch_next_kernel();
}

}  // namespace tessera
