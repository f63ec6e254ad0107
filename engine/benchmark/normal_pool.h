// Random tensor contents that the host knows without a copy of the tensor.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device.h"

namespace tessera {

// A few million normal numbers, rounded to one dtype. Tensors hold them over and over; since their
// count is a prime, the rows of a tensor (and its pages) begin at ever different places in the
// pool.
class NormalPool {
 public:
  static constexpr int64_t kPeriod = 4194301;   // numbers before they repeat
  static constexpr int64_t kMaxRowSize = 1024;  // of row()

  NormalPool(DType dtype, uint64_t seed);

  // Element i of `tensor`, flattened, becomes number (offset + i) mod kPeriod.
  void fill(Device& device, const Tensor& tensor, int64_t offset) const;
  // The elements from `index` on of a tensor that fill() has filled: kMaxRowSize of them.
  const float* row(int64_t index, int64_t offset) const {
    return values_.data() + (offset + index) % kPeriod;
  }

 private:
  DType dtype_;
  std::vector<float> values_;     // [kPeriod + kMaxRowSize], rounded to dtype_
  std::vector<uint16_t> halves_;  // the same in a 16-bit dtype_, else empty
};

// Sets every byte of `tensor`, of a floating-point type, to 0xff: all elements are NaN.
void fill_with_nan(Device& device, const Tensor& tensor);

}  // namespace tessera
