#include <algorithm>
#include <array>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/device/read_bandwidth.h"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/mbarrier.cuh"

namespace tessera {
namespace {

constexpr size_t kMaxBytes = size_t{12} << 30;
constexpr int kPasses = 9;
constexpr int kFillThreads = 256;
constexpr int kLoadThreads = 512;
constexpr int kLoadsInFlight = 4;
constexpr int kCopyBytes = 16384;
constexpr int kStages = 8;
constexpr int kRingBytes = kStages * kCopyBytes;

// Numbers that do not repeat: memory of zeros reads faster than memory in use.
__global__ void fill_kernel(uint32_t* data, size_t count) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += step) {
    const uint32_t hash = static_cast<uint32_t>(i) * 2654435761u;
    data[i] = (hash ^ (hash >> 15)) * 2246822519u;
  }
}

// The sum is stored only to keep the compiler from dropping the loads.
__global__ void __launch_bounds__(kLoadThreads)
    load_kernel(const uint4* data, size_t count, uint32_t* never_written) {
  const size_t step = size_t{gridDim.x} * kLoadThreads;
  uint32_t sum = 0;
  for (size_t i = blockIdx.x * size_t{kLoadThreads} + threadIdx.x; i < count;
       i += step * kLoadsInFlight) {
#pragma unroll
    for (int j = 0; j < kLoadsInFlight; ++j) {
      if (i + j * step < count) {
        const uint4 value = data[i + j * step];
        sum ^= value.x ^ value.y ^ value.z ^ value.w;
      }
    }
  }
  if (sum == 0x12345677u && count == 0) *never_written = sum;
}

// One thread keeps kStages copies in flight; nobody looks at the data.
__global__ void bulk_copy_kernel(const unsigned char* data, size_t num_copies) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char ring[];
  __shared__ uint64_t barriers[kStages];
  for (uint64_t& barrier : barriers) mbarrier_init(&barrier, 1);
  fence_barrier_init();
  const size_t mine = (num_copies - blockIdx.x + gridDim.x - 1) / gridDim.x;
  const auto start = [&](size_t copy) {
    const size_t stage = copy % kStages;
    mbarrier_expect_bytes(&barriers[stage], kCopyBytes);
    copy_bulk_async(ring + stage * kCopyBytes, data + (blockIdx.x + copy * gridDim.x) * kCopyBytes,
                    kCopyBytes, &barriers[stage]);
  };
  for (size_t copy = 0; copy < kStages && copy < mine; ++copy) start(copy);
  for (size_t copy = 0; copy < mine; ++copy) {
    mbarrier_wait(&barriers[copy % kStages], copy / kStages % 2);
    if (copy + kStages < mine) start(copy + kStages);
  }
#endif
}

}  // namespace

double read_bandwidth(cudaStream_t stream) {
  int device = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
  const auto num_blocks = static_cast<unsigned>(properties.multiProcessorCount);
  const size_t num_copies = std::min(kMaxBytes, free_bytes / 2) / kCopyBytes;
  CHECK(num_copies >= num_blocks,
        "too little GPU memory is free to measure its bandwidth: ", free_bytes, " bytes");
  const size_t bytes = num_copies * kCopyBytes;
  const Buffer buffer = allocate_device_memory(bytes, "measuring memory bandwidth");
  auto* const data = static_cast<unsigned char*>(buffer.data());
  fill_kernel<<<num_blocks * 8, kFillThreads, 0, stream>>>(static_cast<uint32_t*>(buffer.data()),
                                                           bytes / sizeof(uint32_t));
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaFuncSetAttribute(bulk_copy_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  properties.major >= 9 ? kRingBytes : 0));

  const Event start = make_timing_event();
  const Event stop = make_timing_event();
  std::array<float, kPasses> milliseconds;
  for (float& pass : milliseconds) {
    CUDA_CHECK(cudaEventRecord(start.get(), stream));
    if (properties.major >= 9) {
      bulk_copy_kernel<<<num_blocks, 1, kRingBytes, stream>>>(data, num_copies);
    } else {
      load_kernel<<<num_blocks * 4, kLoadThreads, 0, stream>>>(reinterpret_cast<const uint4*>(data),
                                                               bytes / sizeof(uint4),
                                                               reinterpret_cast<uint32_t*>(data));
    }
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaEventRecord(stop.get(), stream));
    CUDA_CHECK(cudaEventSynchronize(stop.get()));
    CUDA_CHECK(cudaEventElapsedTime(&pass, start.get(), stop.get()));
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  return static_cast<double>(bytes) / (milliseconds[kPasses / 2] * 1e-3);
}

}  // namespace tessera
