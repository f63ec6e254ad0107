// The host as a device: memory is the host's own, and every copy has happened when its call
// returns.
#pragma once

#include <array>
#include <cstddef>

#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"

namespace tessera {

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int num_threads) : Device(DeviceType::kCpu), pool_(num_threads) {}

  std::string description() const override;
  bool needs_warm_up() const override { return false; }
  bool is_asynchronous() const override { return false; }
  void set_stop_question(StopQuestion should_stop) override {
    pool_.set_stop_question(std::move(should_stop));
  }
  DeviceMemory memory() const override;
  Buffer allocate(size_t bytes, std::string_view purpose) override;
  void synchronize() override {}

  // The threads on which operations run too.
  ThreadPool& pool() { return pool_; }

 private:
  void upload_impl(const Tensor& destination, const Tensor& source) override;
  void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                         const OnPartRead& on_read) override;
  void download_impl(const Tensor& destination, const Tensor& source) override;
  void start_download_impl(size_t index, const Tensor& source) override;
  void finish_download_impl(size_t index, const Tensor& destination) override;

  ThreadPool pool_;
  std::array<std::array<std::byte, kMaxStartedDownloadBytes>, kStartedDownloads> started_downloads_;
};

}  // namespace tessera
