#include "kernels/cuda/transfer/staging_ring.h"

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

std::byte* StagingRing::reserve(size_t bytes, cudaStream_t stream) {
  CHECK(bytes <= kSlotBytes, "a staging slot holds ", kSlotBytes, " bytes, asked for ", bytes);
  if (used_bytes_ + bytes > kSlotBytes) {
    CUDA_CHECK(cudaEventRecord(slots_[current_].fetched.get(), stream));
    current_ = 1 - current_;
    used_bytes_ = 0;
    CUDA_CHECK(cudaEventSynchronize(slots_[current_].fetched.get()));
  }
  std::byte* const memory = static_cast<std::byte*>(slots_[current_].memory.data()) + used_bytes_;
  used_bytes_ += checked_round_up(bytes, kAlignment, "staging size");
  return memory;
}

}  // namespace tessera
