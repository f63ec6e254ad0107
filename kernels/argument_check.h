// The checks in front of every operation, the same for all devices.
#pragma once

#include <string_view>

#include "kernels/rope_params.h"
#include "kernels/tensor/tensor.h"
#include "kernels/weight_matrix.h"

namespace tessera {

// Checks the arguments of one operation: present, on the device, of the dtype and shape expected.
// Throws Error naming operation and argument.
class ArgumentCheck {
 public:
  ArgumentCheck(std::string_view operation, DeviceId device, DType activation)
      : operation_(operation), device_(device), activation_(activation) {}

  void shape(std::string_view name, const Tensor& tensor, const Shape& expected) const {
    CHECK(!tensor.empty() || expected.num_elements() == 0, operation_, ": ", name, " has no data");
    CHECK(tensor.device == device_, operation_, ": ", name, " is on ", to_string(tensor.device),
          ", expected ", to_string(device_));
    CHECK(tensor.shape == expected, operation_, ": ", name, " has shape ", tensor.shape,
          ", expected ", expected);
  }
  void operator()(std::string_view name, const Tensor& tensor, DType dtype,
                  const Shape& expected) const {
    shape(name, tensor, expected);
    CHECK(tensor.dtype == dtype, operation_, ": ", name, " is ", to_string(tensor.dtype),
          ", expected ", to_string(dtype));
  }
  void rank(std::string_view name, const Tensor& tensor, int expected) const {
    CHECK(tensor.shape.rank() == expected, operation_, ": ", name, " has shape ", tensor.shape,
          ", expected ", expected, " dimensions");
  }

  // Checks that the matrix is in a form in which operations can use it, which is kDense.
  void matrix(std::string_view name, const WeightMatrix& matrix) const;
  // Checks a product of x, activation [num_tokens, in_features]: `out`, which may have any dtype,
  // must have its shape.
  void product(std::string_view out_name, const Tensor& out, const Tensor& x,
               const WeightMatrix& weight) const;
  void pages(const KvPages& pages) const;
  void rope(const RopeStoreKvParams& params) const;

  std::string_view operation() const { return operation_; }

 private:
  std::string_view operation_;
  DeviceId device_;
  DType activation_;
};

}  // namespace tessera
