// The owner of one block of memory on one device, and the arena that divides it into tensors.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "kernels/tensor/tensor.h"

namespace tessera {

// Owns memory and frees it once, through the function its device gave it. Move only.
class Buffer {
 public:
  using Release = std::function<void(void*)>;

  Buffer() = default;
  Buffer(void* data, size_t size_bytes, DeviceId device, Release release)
      : data_(data), size_bytes_(size_bytes), device_(device), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    swap(moved);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr && release_) release_(data_);
  }

  void* data() const { return data_; }
  size_t size_bytes() const { return size_bytes_; }
  DeviceId device() const { return device_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(device_, other.device_);
    std::swap(release_, other.release_);
  }

  void* data_ = nullptr;
  size_t size_bytes_ = 0;
  DeviceId device_;
  Release release_;
};

// Divides a buffer into named, 256-byte aligned tensors, in order. A default-constructed arena has
// no memory and only measures: run the same layout function over it first to learn how many bytes
// to allocate, then over an arena on the real buffer.
class Arena {
 public:
  // Tensor maps and vector loads of the GPU want at most 128; 256 is what cudaMalloc itself gives.
  static constexpr size_t kAlignment = 256;

  Arena() = default;
  explicit Arena(const Buffer& buffer)
      : base_(static_cast<std::byte*>(buffer.data())),
        capacity_(buffer.size_bytes()),
        device_(buffer.device()) {}

  // The next tensor. Throws, naming it, when the buffer is too small. While measuring, the returned
  // tensor has a shape and no data.
  Tensor take(std::string_view name, DType dtype, const Shape& shape) {
    const auto bytes =
        checked_multiply(static_cast<size_t>(shape.num_elements()), size_of(dtype), "tensor size");
    const size_t end =
        checked_add(used_, checked_round_up(bytes, kAlignment, "tensor size"), "arena size");
    CHECK(base_ == nullptr || end <= capacity_, "'", name, "' ", shape, " needs ", bytes,
          " bytes, the buffer has ", capacity_ - used_, " of ", capacity_, " left");
    Tensor tensor{base_ == nullptr ? nullptr : base_ + used_, dtype, device_, shape};
    used_ = end;
    return tensor;
  }

  size_t used_bytes() const { return used_; }

 private:
  std::byte* base_ = nullptr;
  size_t capacity_ = 0;
  size_t used_ = 0;
  DeviceId device_;
};

}  // namespace tessera
