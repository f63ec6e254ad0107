// The extents of a tensor, outermost first.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "kernels/tensor/check.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  // Throws when there are more than kMaxRank dimensions or one is negative.
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    CHECK(dims.size() <= kMaxRank, "a shape has at most ", kMaxRank, " dimensions, got ",
          dims.size());
    for (const int64_t dim : dims) CHECK(dim >= 0, "a dimension is negative: ", dim);
    std::copy(dims.begin(), dims.end(), dims_.begin());
  }

  int rank() const { return rank_; }
  int64_t operator[](int index) const {
    CHECK(index >= 0 && index < rank_, "dimension ", index, " of a shape of rank ", rank_);
    return dims_[static_cast<size_t>(index)];
  }
  std::span<const int64_t> dims() const { return {dims_.data(), static_cast<size_t>(rank_)}; }

  // 1 for rank 0. Throws when the product overflows.
  int64_t num_elements() const {
    int64_t count = 1;
    for (const int64_t dim : dims()) count = checked_multiply(count, dim, "number of elements");
    return count;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return std::ranges::equal(a.dims(), b.dims());
  }
  // "[2, 3]"
  friend std::ostream& operator<<(std::ostream& stream, const Shape& shape) {
    stream << '[';
    for (int i = 0; i < shape.rank(); ++i) stream << (i ? ", " : "") << shape[i];
    return stream << ']';
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tessera
