#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class GatherRowsTest : public BackendTest {};

TEST_P(GatherRowsTest, CopiesRowsExactly) {
  constexpr int64_t kNumTokens = 130;
  RandomValues random(1);
  for (const int64_t row_size : {1, 7, 64, 129, 1000}) {
    for (const DType dtype : {DType::kFloat32, activation()}) {
      const auto values = rounded(random.normal(kNumTokens * row_size), dtype);
      const DeviceTensor x = to_device(backend(), values, dtype, {kNumTokens, row_size});
      for (const int64_t num_rows : {1, 3, 17, 130}) {
        const auto rows = random.integers(num_rows, 0, kNumTokens - 1);  // repeats happen
        const Shape shape{num_rows, row_size};
        const DeviceTensor out = poisoned(backend(), dtype, shape);
        operations().gather_rows(out, x, integers(rows, {num_rows}));
        SCOPED_TRACE(testing::Message() << to_string(dtype) << ", rows of " << row_size);
        expect_equal(host(out), reference_rows(values, row_size, rows), shape);
      }
    }
  }
}

FOR_EACH_BACKEND(GatherRowsTest);

}  // namespace
}  // namespace tessera
