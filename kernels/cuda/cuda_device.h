// A GPU as a device: one stream, on which copies and operations run in the order of calls.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "kernels/cuda/device/event.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/cuda/device/memory.h"
#include "kernels/cuda/device/stop_points.h"
#include "kernels/cuda/transfer/part_uploader.h"
#include "kernels/cuda/transfer/staging_ring.h"
#include "kernels/device.h"

namespace tessera {

class CudaDevice final : public Device {
 public:
  // The GPU must be current.
  explicit CudaDevice(const GpuTraits& gpu);

  std::string description() const override;
  bool needs_warm_up() const override { return true; }
  bool is_asynchronous() const override { return true; }
  DeviceMemory memory() const override;
  Buffer allocate(size_t bytes, std::string_view purpose) override;
  void synchronize() override;
  void set_stop_question(StopQuestion should_stop) override {
    stop_points_.set_question(std::move(should_stop));
  }
  void stop_point(double flops) override { stop_points_.pass(flops, stream()); }
  std::unique_ptr<Recording> record(const std::function<void()>& operations) override;

  const GpuTraits& gpu() const { return gpu_; }
  // The stream, with its GPU made current on the calling thread.
  cudaStream_t stream() const;
  // Waits for all work, whatever has become of it: for destructors.
  void finish() const noexcept { cudaStreamSynchronize(stream_.get()); }

 private:
  void upload_impl(const Tensor& destination, const Tensor& source) override;
  void upload_inputs_impl(const Tensor& destination, const Tensor& source) override;
  void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                         const OnPartRead& on_read) override;
  void download_impl(const Tensor& destination, const Tensor& source) override;
  void start_download_impl(size_t index, const Tensor& source) override;
  void finish_download_impl(size_t index, const Tensor& destination) override;

  struct DestroyStream {
    void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
  };
  using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, DestroyStream>;
  static Stream make_stream();

  // A copy on the host, and the point in the stream at which it has arrived.
  struct StartedDownload {
    Buffer memory = allocate_pinned_memory(kMaxStartedDownloadBytes, "started downloads");
    Event arrived = make_event();
  };
  static constexpr size_t kDownloadBytes = size_t{1} << 20;

  GpuTraits gpu_;
  Stream stream_ = make_stream();
  StopPoints stop_points_;
  StagingRing staging_;
  Buffer unconverted_ = allocate_device_memory(StagingRing::kSlotBytes, "converting uploads");
  PartUploader part_uploader_;
  Buffer downloaded_ = allocate_pinned_memory(kDownloadBytes, "downloads");
  std::array<StartedDownload, kStartedDownloads> started_downloads_;
};

}  // namespace tessera
