// Copies of a few kilobytes between the device and page-locked host memory, by kernels. The copy
// engine would add 15 us to a decode step (H200): it and the kernels before and after it wait for
// each other, while kernels begin as their predecessors end.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tessera {

// What is larger travels faster by the copy engine.
inline constexpr size_t kMaxKernelCopyBytes = size_t{64} << 10;

// `bytes` <= kMaxKernelCopyBytes are whole 4-byte words; `host` is page-locked.

// In the order of the stream, but `host` is read before: it is complete when this is called. The
// next kernel may begin before `device` is written, and must not read it before it waits.
//   both 16-byte aligned; host: readable up to the next multiple of 16 bytes
void launch_copy_from_host(void* device, const void* host, size_t bytes, cudaStream_t stream);

//   both 4-byte aligned
void launch_copy_to_host(void* host, const void* device, size_t bytes, cudaStream_t stream);

}  // namespace tessera
