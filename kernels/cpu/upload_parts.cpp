#include "kernels/cpu/upload_parts.h"

#include <algorithm>
#include <vector>

#include "kernels/cpu/copy_tensor.h"
#include "kernels/read_ahead.h"

namespace tessera {

void upload_parts(std::span<const UploadPart> parts, const Device::ReadPart& read,
                  const Device::OnPartRead& on_read, int num_threads) {
  // A thread that has finished a part begins the next without waiting for the consumer.
  const size_t num_slots = 2 * static_cast<size_t>(num_threads);
  std::vector<std::vector<std::byte>> unconverted(num_slots);
  const auto fetch = [&](size_t index, size_t slot) {
    const UploadPart& part = parts[index];
    const Tensor& destination = part.destination;
    if (part.source_dtype == destination.dtype) {
      return read(index, static_cast<std::byte*>(destination.data));
    }
    std::vector<std::byte>& memory = unconverted[slot];
    memory.resize(std::max(memory.size(), part.source_bytes()));
    read(index, memory.data());
    copy_elements(destination,
                  {memory.data(), part.source_dtype, DeviceType::kCpu, destination.shape}, 0,
                  destination.num_elements());
  };
  ReadAhead ahead(parts.size(), {num_slots, static_cast<size_t>(num_threads)}, fetch);
  for (size_t i = 0; i < parts.size(); ++i) {
    ahead.take();
    ahead.release();
    on_read(i);
  }
}

}  // namespace tessera
