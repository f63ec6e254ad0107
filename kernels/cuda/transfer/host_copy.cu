#include <cstdint>

#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/transfer/host_copy.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;
constexpr size_t kWordBytes = sizeof(uint32_t);
constexpr int kVectorWords = 4;

// A thread brings 16 bytes, before it waits for the kernels that may still use their place.
__global__ void __launch_bounds__(kThreads)
    copy_from_host_kernel(uint32_t* device, const uint4* host, int words) {
  launch_next_kernel();
  const int index = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int left = words - index * kVectorWords;
  uint4 value{};
  if (left > 0) value = __ldcv(host + index);  // never from a cache
  wait_for_previous_results();
  if (left >= kVectorWords) {
    reinterpret_cast<uint4*>(device)[index] = value;
  } else if (left > 0) {
    uint32_t* const last = device + index * kVectorWords;
    last[0] = value.x;
    if (left > 1) last[1] = value.y;
    if (left > 2) last[2] = value.z;
  }
}

// A thread takes 4 bytes.
__global__ void __launch_bounds__(kThreads)
    copy_to_host_kernel(uint32_t* host, const uint32_t* device, int words) {
  wait_for_previous_kernel();
  const int index = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (index < words) host[index] = device[index];
}

// A copy of `bytes`, of which each thread takes `thread_words`.
LaunchShape shape_of(size_t bytes, int64_t thread_words) {
  CHECK(bytes <= kMaxKernelCopyBytes && bytes % kWordBytes == 0, "a kernel cannot copy ", bytes,
        " bytes");
  const int64_t threads = ceil_divide(static_cast<int64_t>(bytes / kWordBytes), thread_words);
  return {.blocks = dim3(static_cast<unsigned>(ceil_divide(threads, int64_t{kThreads}))),
          .threads = kThreads};
}

}  // namespace

void launch_copy_from_host(void* device, const void* host, size_t bytes, cudaStream_t stream) {
  CHECK(reinterpret_cast<uintptr_t>(device) % sizeof(uint4) == 0,
        "a kernel copies to addresses that are multiples of 16 only");
  launch_dependent(copy_from_host_kernel, shape_of(bytes, kVectorWords), stream,
                   static_cast<uint32_t*>(device), static_cast<const uint4*>(host),
                   static_cast<int>(bytes / kWordBytes));
}

void launch_copy_to_host(void* host, const void* device, size_t bytes, cudaStream_t stream) {
  launch_dependent(copy_to_host_kernel, shape_of(bytes, 1), stream, static_cast<uint32_t*>(host),
                   static_cast<const uint32_t*>(device), static_cast<int>(bytes / kWordBytes));
}

}  // namespace tessera
