// cp.async: copies from global to shared memory that threads start and later wait for (sm_80).
#pragma once

#include <cstdint>

namespace tessera {

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// Starts copying 16 bytes, or writing 16 zero bytes when `valid` is false; `global` is not read
// then. Both addresses are 16-byte aligned.
__device__ inline void copy_async_16(void* shared, const void* global, bool valid) {
  asm volatile(
      "cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared_address(shared)),
      "l"(global), "r"(valid ? 16 : 0)
      : "memory");
}

// Ends a group: the copies this thread started since the last call.
__device__ inline void commit_async_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most kPending of this thread's groups are unfinished. Other threads see the data
// after a barrier.
template <int kPending>
__device__ void wait_async_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace tessera
