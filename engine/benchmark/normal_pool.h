// Random tensor contents that the host knows without a copy of the tensor.
#pragma once

#include <cstddef>
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

  // Of float32, float16, bfloat16 or float8_e4m3.
  NormalPool(DType dtype, uint64_t seed);

  // `tensor` has the pool's dtype. Element i of it, flattened, becomes number (offset + i) mod
  // kPeriod.
  void fill(Device& device, const Tensor& tensor, int64_t offset) const;
  // The elements from `index` on of a tensor that fill() has filled: kMaxRowSize of them.
  const float* row(int64_t index, int64_t offset) const {
    return values_.data() + (offset + index) % kPeriod;
  }

 private:
  DType dtype_;
  std::vector<float> values_;        // [kPeriod + kMaxRowSize], rounded to dtype_
  std::vector<std::byte> elements_;  // the first kPeriod of them in dtype_
};

// Sets every byte of `tensor`, of a floating-point type, to 0xff: all elements are NaN.
void fill_with_nan(Device& device, const Tensor& tensor);

}  // namespace tessera
