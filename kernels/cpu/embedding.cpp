#include "kernels/cpu/embedding.h"

#include <algorithm>

#include "kernels/cpu/element_types.h"

namespace tessera {

void gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows, float multiplier,
                 ThreadPool& pool) {
  const int64_t hidden_size = table.dim(1);
  const double row_nanoseconds = static_cast<double>(hidden_size * 8) * kNanosecondsPerByte;
  with_float_type(table.dtype, [&]<typename Element>() {
    pool.for_each(out.dim(0), row_nanoseconds, [&](int64_t i) {
      const Element* row = table.as<Element>() + std::max(rows.as<int32_t>()[i], 0) * hidden_size;
      std::transform(row, row + hidden_size, out.as<float>() + i * hidden_size,
                     [=](Element value) { return to_float(value) * multiplier; });
    });
  });
}

void take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn) {
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    const int32_t index = from.as<int32_t>()[i];
    if (index >= 0) ids.as<int32_t>()[i] = drawn.as<int32_t>()[index];
  }
}

}  // namespace tessera
