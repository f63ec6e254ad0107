#include "kernels/cuda/device/memory.h"

#include <iomanip>
#include <sstream>
#include <string>

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {
namespace {

// "3.25 GiB (3489660928 bytes)"
std::string describe_bytes(size_t bytes) {
  std::ostringstream stream;
  stream << std::fixed << std::setprecision(2) << static_cast<double>(bytes) / (1 << 30) << " GiB ("
         << bytes << " bytes)";
  return stream.str();
}

}  // namespace

// An error while freeing can only be the echo of an earlier failure that was already reported, and
// a destructor must not throw: it is dropped.

Buffer allocate_device_memory(size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t code = cudaMalloc(&data, bytes);
  if (code == cudaErrorMemoryAllocation || code == cudaErrorInvalidValue) {  // too much; absurd
    cudaGetLastError();
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    throw Error(concat("not enough GPU memory for ", purpose, ": asked for ", describe_bytes(bytes),
                       ", free are ", describe_bytes(free_bytes)));
  }
  CUDA_CHECK(code);
  int index = 0;
  CUDA_CHECK(cudaGetDevice(&index));
  return Buffer(data, bytes, {DeviceType::kCuda, index}, [](void* memory) { cudaFree(memory); });
}

Buffer allocate_pinned_memory(size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t code = cudaMallocHost(&data, bytes);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(
        concat("cannot page-lock ", describe_bytes(bytes), " of host memory for ", purpose));
  }
  CUDA_CHECK(code);
  return Buffer(data, bytes, DeviceType::kCpu, [](void* memory) { cudaFreeHost(memory); });
}

}  // namespace tessera
