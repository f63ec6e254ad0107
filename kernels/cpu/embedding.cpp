#include "kernels/cpu/embedding.h"

#include <algorithm>

#include "kernels/cpu/element_types.h"
#include "kernels/cpu/parallel.h"

namespace tessera {

void gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows, int num_threads) {
  const int64_t hidden_size = table.dim(1);
  with_float_type(table.dtype, [&]<typename Element>() {
    parallel_for(out.dim(0), num_threads, [&](int64_t i) {
      const Element* row = table.as<Element>() + rows.as<int32_t>()[i] * hidden_size;
      std::transform(row, row + hidden_size, out.as<float>() + i * hidden_size,
                     [](Element value) { return to_float(value); });
    });
  });
}

}  // namespace tessera
