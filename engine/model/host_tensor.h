// Views of host vectors as tensors, for Device::upload and Device::download.
#pragma once

#include <vector>

#include "kernels/tensor/tensor.h"

namespace tessera {

// The vector under `shape`. The tensor type has no const form: do not write through this view.
template <typename T>
Tensor host_tensor(const std::vector<T>& values, const Shape& shape) {
  CHECK(shape.num_elements() == static_cast<int64_t>(values.size()), "a vector of ", values.size(),
        " elements cannot have shape ", shape);
  return {const_cast<T*>(values.data()), DTypeOf<T>::value, DeviceType::kCpu, shape};
}

// The vector as one dimension.
template <typename T>
Tensor host_tensor(const std::vector<T>& values) {
  return host_tensor(values, Shape{static_cast<int64_t>(values.size())});
}

}  // namespace tessera
