#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class EmbedTest : public BackendTest {};

TEST_P(EmbedTest, CopiesRowsExactly) {
  constexpr int64_t kVocabSize = 301;
  RandomValues random(1);
  for (const DType dtype : weight_dtypes()) {
    for (const int64_t hidden_size : {1, 7, 64, 129, 1000}) {
      const auto values = rounded(random.normal(kVocabSize * hidden_size), dtype);
      const DeviceTensor table = to_device(backend(), values, dtype, {kVocabSize, hidden_size});
      for (const int64_t num_tokens : {1, 3, 17, 33, 129}) {
        auto ids = random.integers(num_tokens, 0, kVocabSize - 1);
        ids.back() = kVocabSize - 1;
        ids.front() = 0;
        const Shape shape{num_tokens, hidden_size};
        const DeviceTensor out = poisoned(backend(), DType::kFloat32, shape);
        operations().embed(out, table, integers(ids, {num_tokens}));
        SCOPED_TRACE(testing::Message() << "table " << to_string(dtype) << " " << hidden_size);
        expect_equal(host(out), reference_rows(values, hidden_size, ids), shape);
      }
    }
  }
}

TEST_P(EmbedTest, MultipliesInFloat32) {
  constexpr int64_t kVocabSize = 31;
  constexpr float kMultiplier = 50.59644256f;  // of a hidden size of 2560
  RandomValues random(2);
  for (const int64_t hidden_size : {7, 64, 1000}) {
    auto values = rounded(random.normal(kVocabSize * hidden_size),
                          operations().weight_dtype(DType::kBFloat16));
    const DeviceTensor table = to_device(
        backend(), values, operations().weight_dtype(DType::kBFloat16), {kVocabSize, hidden_size});
    const auto ids = random.integers(5, 0, kVocabSize - 1);
    const Shape shape{5, hidden_size};
    const DeviceTensor out = poisoned(backend(), DType::kFloat32, shape);
    operations().embed(out, table, integers(ids, {5}), kMultiplier);
    for (double& value : values) value *= kMultiplier;
    expect_equal(host(out), rounded(reference_rows(values, hidden_size, ids), DType::kFloat32),
                 shape);
  }
}

// A step that runs ahead may meet the mark that sampling leaves where there is no token.
TEST_P(EmbedTest, TheMarkOfNonFiniteLogitsIsTheFirstToken) {
  const DeviceTensor table = floats({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  const DeviceTensor out = poisoned(backend(), DType::kFloat32, {3, 4});
  operations().embed(out, table, integers({1, kNonFiniteLogits, 1}, {3}));
  EXPECT_EQ(host(out), (std::vector<double>{5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST_P(EmbedTest, NoTokensIsNoWork) {
  const DeviceTensor table = floats(std::vector<double>(8, 1.0), {2, 4});
  const DeviceTensor out = poisoned(backend(), DType::kFloat32, {0, 4});
  EXPECT_NO_THROW(operations().embed(out, table, integers({}, {0})));
}

FOR_EACH_BACKEND(EmbedTest);

}  // namespace
}  // namespace tessera
