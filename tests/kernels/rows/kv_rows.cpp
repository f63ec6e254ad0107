#include "tests/kernels/rows/kv_rows.h"

#include <algorithm>
#include <cmath>

namespace tessera {

std::vector<double> rope_table(int64_t head_dim, double amplitude) {
  std::vector<double> result;
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    result.push_back(
        std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim)));
  }
  result.resize(static_cast<size_t>(head_dim), amplitude);
  return rounded(result, DType::kFloat32);
}

void append(Reference& reference, const Reference& more) {
  reference.values.insert(reference.values.end(), more.values.begin(), more.values.end());
  reference.magnitudes.insert(reference.magnitudes.end(), more.magnitudes.begin(),
                              more.magnitudes.end());
}

std::vector<double> stored_rows(const std::vector<double>& pages, const Shape& page_shape,
                                const std::vector<int32_t>& slots) {
  const int64_t num_heads = page_shape[1];
  const int64_t page_size = page_shape[2];
  const int64_t head_dim = page_shape[3];
  std::vector<double> rows;
  for (const int32_t slot : slots) {
    for (int64_t h = 0; h < num_heads; ++h) {
      const int64_t row = (slot / page_size * num_heads + h) * page_size + slot % page_size;
      const auto begin = pages.begin() + row * head_dim;
      rows.insert(rows.end(), begin, begin + head_dim);
    }
  }
  const auto untouched = std::ranges::count_if(pages, [](double x) { return std::isnan(x); });
  EXPECT_EQ(untouched, static_cast<int64_t>(pages.size() - rows.size()))
      << "rows that no slot names were written";
  return rows;
}

}  // namespace tessera
