// One device: what it is, its memory, and copies between it and the host.
//
// Public functions check their arguments once and then call the device's private implementation.
// Whatever a device does for its host is ordered: copies and operations (kernels/operations.h) take
// effect in the order of calls, except that upload_parts() does not wait for them. They may return
// before they have happened; download(), finish_download() and synchronize() wait. Tensors are
// contiguous. A Device and all that works on it is used from one thread at a time; upload_parts()
// says when from two.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "kernels/tensor/buffer.h"
#include "kernels/tensor/stopped.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

struct DeviceMemory {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
};

// A contiguous part of a device tensor that is filled from a file, of at most kMaxUploadPartBytes
// in the dtype in which the file stores it.
struct UploadPart {
  Tensor destination;
  DType source_dtype = DType::kFloat32;

  size_t source_bytes() const {
    return static_cast<size_t>(destination.num_elements()) * size_of(source_dtype);
  }
};

// On an H200, weights arrive at 46 GB/s in parts of 1 MiB, at 53 in parts of 4 MiB or 8.
constexpr size_t kMaxUploadPartBytes = size_t{4} << 20;

// What operations have launched on a device, to be launched again; see Device::record. Destroyed
// before the device.
class Recording {
 public:
  virtual ~Recording() = default;
  // Has the effect of calling the operations again, on what their tensors hold now. All memory that
  // they use must still be what it was. Passes no stop points. Throws Error when the device fails.
  virtual void launch() = 0;
};

// A download that has been started; see Device::start_download.
using DownloadTicket = uint64_t;

// The tokens of 4096 sequences.
constexpr size_t kMaxStartedDownloadBytes = size_t{16} << 10;

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceId id() const { return id_; }
  DeviceType type() const { return id_.type; }
  // For people: "NVIDIA H200, sm_90, 139.7 GiB" or "CPU, 2 threads, AVX-512".
  virtual std::string description() const = 0;
  // The first call of an operation takes far longer than later ones, because its code is loaded. So
  // the first token comes earlier if each operation runs once while upload_parts() waits for a
  // file.
  virtual bool needs_warm_up() const = 0;
  // Operations return before the device has run them, so that the host can prepare the next ones
  // meanwhile.
  virtual bool is_asynchronous() const = 0;
  // From now on the device asks should_stop: where operations return when they are done, while it
  // computes them, and otherwise at stop points. If the answer is yes, operations, copies and stop
  // points throw Stopped, and what operations since the last no were to write is unspecified.
  virtual void set_stop_question(StopQuestion should_stop) = 0;
  // A point between operations; those since the last such point are about `flops` floating-point
  // operations. While there is a question, an asynchronous device waits here from time to time for
  // what it has not computed yet, so that it has little left to do when the answer is yes.
  virtual void stop_point(double /*flops*/) {}
  // Records the operations that `operations` calls, which have no effect yet. Each must have been
  // called before with arguments of the same shapes and types, and there must be no stop question.
  // Null where the device does not record, or has no memory for it. Throws what `operations`
  // throws, and Error when the device fails; nothing has had an effect then.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& /*operations*/) {
    return nullptr;
  }

  virtual DeviceMemory memory() const = 0;
  // Throws Error naming `purpose`, the bytes asked for and the bytes free.
  virtual Buffer allocate(size_t bytes, std::string_view purpose) = 0;

  // Copies source.size_bytes() from host memory, converting when the dtypes differ (floats only).
  // `source` may be reused when the call returns.
  void upload(const Tensor& destination, const Tensor& source);
  // The same without conversion and with less delay between the operations before and after, for
  // the few kilobytes that change from step to step. Types are int32 or float32; the destination
  // lies at the beginning of an allocation or a multiple of 16 bytes behind it. Not for weights:
  // see early reads in kernels/operations.h.
  void upload_inputs(const Tensor& destination, const Tensor& source);
  // Fills all `parts`, converting as upload() does, while several threads read: read(i, target)
  // writes parts[i].source_bytes() bytes to host memory, 16-byte aligned. on_read(i) follows on the
  // calling thread, in order. Returns when all parts are on the device. Throws what read threw for
  // the first part that failed, or what on_read threw; the parts' contents are then unspecified.
  // While it runs, another thread may run operations (see needs_warm_up), and those called before
  // may still run: they must not use the parts' tensors.
  using ReadPart = std::function<void(size_t index, std::byte* target)>;
  using OnPartRead = std::function<void(size_t index)>;
  void upload_parts(std::span<const UploadPart> parts, const ReadPart& read,
                    const OnPartRead& on_read);
  // Copies to host memory and waits until it is there. Same dtype and shape.
  void download(const Tensor& destination, const Tensor& source);
  // Starts a download of at most kMaxStartedDownloadBytes, int32 or float32. Operations may follow
  // before finish_download(): they change nothing in what is downloaded, and finish_download() does
  // not wait for them. The last two downloads that were started can be finished; none has to be.
  DownloadTicket start_download(const Tensor& source);
  void finish_download(const Tensor& destination, DownloadTicket ticket);
  virtual void synchronize() = 0;

 protected:
  explicit Device(DeviceId id) : id_(id) {}

  static constexpr size_t kStartedDownloads = 2;

 private:
  virtual void upload_impl(const Tensor& destination, const Tensor& source) = 0;
  virtual void upload_inputs_impl(const Tensor& destination, const Tensor& source) {
    upload_impl(destination, source);
  }
  virtual void upload_parts_impl(std::span<const UploadPart> parts, const ReadPart& read,
                                 const OnPartRead& on_read) = 0;
  virtual void download_impl(const Tensor& destination, const Tensor& source) = 0;
  // The device keeps kStartedDownloads copies on the host, of which a new one replaces copy
  // `index`.
  virtual void start_download_impl(size_t index, const Tensor& source) = 0;
  virtual void finish_download_impl(size_t index, const Tensor& destination) = 0;

  DeviceId id_;
  std::array<Tensor, kStartedDownloads> started_;  // what the last downloads were started from
  DownloadTicket next_ticket_ = 0;
};

}  // namespace tessera
