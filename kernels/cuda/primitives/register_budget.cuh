// Registers that warpgroups hand each other (setmaxnreg, sm_90a alone): a kernel starts with the
// same number in all threads, of which those that only copy need few.
#pragma once

namespace tessera {

// Of each thread, a multiple of 8; all four warps of a warpgroup call it together.
template <int kRegisters>
__device__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
// Waits until others have given them up.
template <int kRegisters>
__device__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace tessera
