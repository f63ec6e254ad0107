// A view of a contiguous row-major tensor. Copy it freely: it never owns and never frees.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/tensor/device_id.h"
#include "kernels/tensor/dtype.h"
#include "kernels/tensor/shape.h"

namespace tessera {

struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  DeviceId device;
  Shape shape;

  // Whether these are the same view: of the same memory, with the same type and shape. What the
  // elements are is not compared.
  friend bool operator==(const Tensor&, const Tensor&) = default;

  bool empty() const { return data == nullptr; }
  int64_t dim(int index) const { return shape[index]; }
  int64_t num_elements() const { return shape.num_elements(); }
  size_t size_bytes() const { return static_cast<size_t>(num_elements()) * size_of(dtype); }

  // The elements as T; throws when T is not the tensor's dtype.
  template <typename T>
  T* as() const {
    CHECK(DTypeOf<T>::value == dtype, "tensor ", shape, " is ", to_string(dtype), ", accessed as ",
          to_string(DTypeOf<T>::value));
    return static_cast<T*>(data);
  }

  // Entries [begin, end) of the first dimension.
  Tensor slice(int64_t begin, int64_t end) const {
    CHECK(shape.rank() > 0 && begin >= 0 && begin <= end && end <= dim(0), "slice [", begin, ", ",
          end, ") of a tensor of shape ", shape);
    std::array<int64_t, Shape::kMaxRank> dims{};
    std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
    dims[0] = end - begin;
    const int64_t row_elements = dim(0) == 0 ? 0 : num_elements() / dim(0);
    Tensor result = *this;
    result.data =
        static_cast<std::byte*>(data) + static_cast<size_t>(begin * row_elements) * size_of(dtype);
    result.shape = Shape(std::span(dims.data(), static_cast<size_t>(shape.rank())));
    return result;
  }

  // The same elements under another shape of equal size.
  Tensor reshape(const Shape& new_shape) const {
    CHECK(new_shape.num_elements() == num_elements(), "cannot view shape ", shape, " as ",
          new_shape);
    Tensor result = *this;
    result.shape = new_shape;
    return result;
  }
};

}  // namespace tessera
