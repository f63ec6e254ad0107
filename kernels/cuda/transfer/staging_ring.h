// Page-locked memory through which the small data of a step travels to the GPU. Weights go by
// transfer/part_uploader.h.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <span>

#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/tensor/buffer.h"

namespace tessera {

// Two slots in turn: while the GPU fetches from one, the host fills the other. Small uploads share
// a slot one after the other, so they wait for nothing; only changing the slot may wait, until the
// GPU has fetched what the slot held.
class StagingRing {
 public:
  static constexpr size_t kSlotBytes = size_t{4} << 20;

  // Memory of `bytes` <= kSlotBytes, 256-byte aligned, to fill and then to copy from on `stream`.
  // All copies from the ring run on one stream.
  std::byte* reserve(size_t bytes, cudaStream_t stream);

 private:
  static constexpr size_t kAlignment = 256;

  struct Slot {
    Buffer memory = allocate_pinned_memory(kSlotBytes, "uploads");
    Event fetched = make_event();  // after the last copy from this slot
  };

  std::array<Slot, 2> slots_;
  size_t current_ = 0;
  size_t used_bytes_ = 0;  // of the current slot
};

}  // namespace tessera
