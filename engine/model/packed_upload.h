// Several small host arrays that travel to the device as one copy: each copy costs a few
// microseconds, which a small model's step would notice.
#pragma once

#include <cstring>
#include <vector>

#include "engine/model/host_tensor.h"
#include "kernels/device.h"

namespace tessera {

class PackedUpload {
 public:
  // Elements of a buffer that an array of `size` takes: arrays begin at multiples of 256 bytes.
  static constexpr int64_t padded_size(int64_t size) {
    return ceil_divide(size, kAlignment) * kAlignment;
  }

  // buffer: int32 [at least the padded sizes of all arrays], on the device.
  explicit PackedUpload(const Tensor& buffer) : buffer_(buffer) {}

  // The array's place on the device; its elements are there after upload().
  template <typename T>
  Tensor add(const std::vector<T>& values, const Shape& shape) {
    static_assert(sizeof(T) == sizeof(int32_t));
    const Tensor source = host_tensor(values, shape);
    const auto begin = static_cast<int64_t>(packed_.size());
    packed_.resize(static_cast<size_t>(begin + padded_size(source.num_elements())));
    if (!values.empty()) {
      std::memcpy(packed_.data() + begin, values.data(), values.size() * sizeof(T));
    }
    Tensor place = buffer_.slice(begin, begin + source.num_elements());
    place.dtype = source.dtype;
    place.shape = shape;
    return place;
  }
  template <typename T>
  Tensor add(const std::vector<T>& values) {
    return add(values, Shape{static_cast<int64_t>(values.size())});
  }

  void upload(Device& device) const {
    device.upload_inputs(buffer_.slice(0, static_cast<int64_t>(packed_.size())),
                         host_tensor(packed_));
  }

 private:
  static constexpr int64_t kAlignment = 64;  // elements

  Tensor buffer_;
  std::vector<int32_t> packed_;
};

}  // namespace tessera
