#include "kernels/cpu/cpu_device.h"

#include <cstring>

#include "kernels/cpu/copy_tensor.h"
#include "kernels/cpu/host_memory.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/upload_parts.h"

namespace tessera {

std::string CpuDevice::description() const {
  return concat("CPU, ", counted(pool_.num_threads(), "thread"), ", ", vector_instruction_set());
}

DeviceMemory CpuDevice::memory() const { return host_memory(); }

Buffer CpuDevice::allocate(size_t bytes, std::string_view purpose) {
  return allocate_host_memory(bytes, purpose);
}

void CpuDevice::upload_impl(const Tensor& destination, const Tensor& source) {
  copy_tensor(destination, source, pool_);
}

void CpuDevice::upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                                  const OnPartRead& on_read) {
  tessera::upload_parts(parts, read, on_read, pool_.num_threads());
}

void CpuDevice::download_impl(const Tensor& destination, const Tensor& source) {
  copy_tensor(destination, source, pool_);
}

void CpuDevice::start_download_impl(size_t index, const Tensor& source) {
  std::memcpy(started_downloads_[index].data(), source.data, source.size_bytes());
}

void CpuDevice::finish_download_impl(size_t index, const Tensor& destination) {
  std::memcpy(destination.data, started_downloads_[index].data(), destination.size_bytes());
}

}  // namespace tessera
