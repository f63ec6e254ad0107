// Weights on their way from files to the GPU.
//
//   file --read by several threads--> pinned slot --copy stream--> device [--convert--> device]
//
// One thread reads from the page cache at 9 GB/s, the link takes 55: so several read, each into its
// own slot of a ring, and the slots are copied in the order of the parts.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <span>

#include "kernels/cuda/device/event.h"
#include "kernels/device.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

// Touches nothing but its own stream and memory, so that operations may run meanwhile.
class PartUploader {
 public:
  PartUploader();
  ~PartUploader();
  PartUploader(const PartUploader&) = delete;
  PartUploader& operator=(const PartUploader&) = delete;

  // Device::upload_parts.
  void run(std::span<const UploadPart> parts, const Device::ReadPart& read,
           const Device::OnPartRead& on_read);

 private:
  // 64 MiB: page-locking costs 0.33 ms a MiB, and twice as many slots gain nothing.
  static constexpr size_t kNumSlots = 16;
  // Copies that wait behind the one that runs, so that the link never idles; their slots are the
  // ones that nobody can read into.
  static constexpr size_t kQueuedCopies = 2;

  std::byte* slot_memory(size_t slot) const;
  void copy(const UploadPart& part, size_t slot);

  cudaStream_t stream_ = nullptr;
  std::array<Event, kNumSlots> copied_;  // after the last copy from this slot
  Buffer slots_;                         // pinned
  Buffer unconverted_;                   // one slot's data, on the device
};

}  // namespace tessera
