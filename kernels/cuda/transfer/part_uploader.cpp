#include "kernels/cuda/transfer/part_uploader.h"

#include <algorithm>
#include <thread>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/transfer/convert.h"
#include "kernels/read_ahead.h"

namespace tessera {
namespace {

// Eight read 62 GB/s from the page cache of an H200's host, which keeps its link (55 GB/s) busy;
// with twelve, in one another's way, weights arrive 5 % more slowly. One core is left for the
// thread that queues copies.
constexpr size_t kMaxReadingThreads = 8;

size_t num_reading_threads() {
  const size_t num_cores = std::max(2u, std::thread::hardware_concurrency());
  return std::min(kMaxReadingThreads, num_cores - 1);
}

// Waits for the stream, so that no copy reads a slot or writes a tensor after its end.
class StreamGuard {
 public:
  explicit StreamGuard(cudaStream_t stream) : stream_(stream) {}
  ~StreamGuard() { cudaStreamSynchronize(stream_); }
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  cudaStream_t stream_;
};

}  // namespace

PartUploader::PartUploader()
    : slots_(allocate_pinned_memory(kNumSlots * kMaxUploadPartBytes, "reading weights")),
      unconverted_(allocate_device_memory(kMaxUploadPartBytes, "converting weights")) {
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  for (Event& event : copied_) event = make_event();
}

PartUploader::~PartUploader() { cudaStreamDestroy(stream_); }

std::byte* PartUploader::slot_memory(size_t slot) const {
  return static_cast<std::byte*>(slots_.data()) + slot * kMaxUploadPartBytes;
}

void PartUploader::run(std::span<const UploadPart> parts, const Device::ReadPart& read,
                       const Device::OnPartRead& on_read) {
  const StreamGuard guard(stream_);
  ReadAhead ahead(parts.size(), {kNumSlots, num_reading_threads()},
                  [&](size_t part, size_t slot) { read(part, slot_memory(slot)); });
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > kQueuedCopies) {
      CUDA_CHECK(cudaEventSynchronize(copied_[(i - kQueuedCopies - 1) % kNumSlots].get()));
      ahead.release();
    }
    copy(parts[i], ahead.take());
    on_read(i);
  }
  CUDA_CHECK(cudaStreamSynchronize(stream_));
}

void PartUploader::copy(const UploadPart& part, size_t slot) {
  const Tensor& destination = part.destination;
  const bool convert = part.source_dtype != destination.dtype;
  // The stream's order alone keeps one conversion's input from the next.
  void* const fetched = convert ? unconverted_.data() : destination.data;
  CUDA_CHECK(cudaMemcpyAsync(fetched, slot_memory(slot), part.source_bytes(),
                             cudaMemcpyHostToDevice, stream_));
  if (convert) {
    launch_convert(destination.data, destination.dtype, fetched, part.source_dtype,
                   destination.num_elements(), stream_);
  }
  CUDA_CHECK(cudaEventRecord(copied_[slot].get(), stream_));
}

}  // namespace tessera
