#include <gtest/gtest.h>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

struct LinearShape {
  int64_t num_tokens;
  int64_t in_features;
  int64_t out_features;
};

// Every count around the hand-over from streaming weights to tiles of tokens, and from one round of
// 512 to the next, and sizes that no tile divides. in_features are multiples of 8, as CUDA needs.
std::vector<LinearShape> linear_shapes() {
  std::vector<LinearShape> shapes;
  for (const int64_t num_tokens : {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 64, 65, 129}) {
    shapes.push_back({num_tokens, 64, 64});
    shapes.push_back({num_tokens, 136, 131});
  }
  for (const int64_t num_tokens : {1, 3, 33}) {
    shapes.push_back({num_tokens, 8, 1});
    shapes.push_back({num_tokens, 24, 3});
    shapes.push_back({num_tokens, 1000, 257});
    shapes.push_back({num_tokens, 2048, 512});
    shapes.push_back({num_tokens, 5632, 72});
  }
  for (const int64_t num_tokens : {511, 512, 513, 1057}) shapes.push_back({num_tokens, 40, 129});
  return shapes;
}

class LinearTest : public BackendTest {
 protected:
  void check(const LinearShape& size, DType weight_dtype, DType out_dtype) const {
    SCOPED_TRACE(testing::Message() << size.num_tokens << " tokens, " << size.in_features << " -> "
                                    << size.out_features << ", weights " << to_string(weight_dtype)
                                    << ", out " << to_string(out_dtype));
    RandomValues random(static_cast<uint64_t>(size.num_tokens));
    const auto x = rounded(random.normal(size.num_tokens * size.in_features), activation());
    const auto weight =
        rounded(random.normal(size.out_features * size.in_features, 0.05), weight_dtype);
    const Shape shape{size.num_tokens, size.out_features};
    const DeviceTensor out = poisoned(backend(), out_dtype, shape);
    operations().linear(
        out, activations(x, {size.num_tokens, size.in_features}),
        to_device(backend(), weight, weight_dtype, {size.out_features, size.in_features}));
    expect_close(host(out), reference_linear(x, weight, size.in_features), shape,
                 {.out = out_dtype, .length = size.in_features});
  }
};

TEST_P(LinearTest, MatchesReference) {
  for (const LinearShape& size : linear_shapes()) {
    check(size, operations().weight_dtype(DType::kBFloat16), activation());
  }
}

// Rounded once more where a product has been stored before its bias is added.
TEST_P(LinearTest, AddsABias) {
  const DType dtype = operations().weight_dtype(DType::kBFloat16);
  for (const LinearShape& size : linear_shapes()) {
    for (const DType out_dtype : {activation(), DType::kFloat32}) {
      SCOPED_TRACE(testing::Message()
                   << size.num_tokens << " tokens, " << size.in_features << " -> "
                   << size.out_features << ", out " << to_string(out_dtype));
      RandomValues random(static_cast<uint64_t>(size.num_tokens));
      const auto x = rounded(random.normal(size.num_tokens * size.in_features), activation());
      const auto weight = rounded(random.normal(size.out_features * size.in_features, 0.05), dtype);
      const auto bias = rounded(random.normal(size.out_features, 3.0), DType::kFloat32);
      const DeviceTensor device_weight =
          to_device(backend(), weight, dtype, {size.out_features, size.in_features});
      const DeviceTensor device_bias = floats(bias, {size.out_features});
      WeightMatrix matrix = device_weight;
      matrix.bias = device_bias;
      const Shape shape{size.num_tokens, size.out_features};
      const DeviceTensor out = poisoned(backend(), out_dtype, shape);
      operations().linear(out, activations(x, {size.num_tokens, size.in_features}), matrix);
      Reference expected = reference_linear(x, weight, size.in_features);
      add_bias(expected, bias);
      expect_close(
          host(out), expected, shape,
          {.out = out_dtype, .length = size.in_features + 1, .relative = unit_roundoff(out_dtype)});
    }
  }
}

TEST_P(LinearTest, WritesFloat32Logits) {
  for (const LinearShape& size :
       {LinearShape{1, 64, 1003}, LinearShape{3, 136, 131}, LinearShape{17, 256, 1003}}) {
    check(size, operations().weight_dtype(DType::kBFloat16), DType::kFloat32);
  }
}

TEST_P(LinearTest, TakesEveryWeightType) {
  for (const DType dtype : weight_dtypes()) {
    for (const LinearShape& size :
         {LinearShape{1, 512, 131}, LinearShape{5, 136, 64}, LinearShape{40, 136, 67}}) {
      check(size, dtype, DType::kFloat32);
    }
  }
}

TEST_P(LinearTest, IsBitwiseRepeatable) {
  const DType dtype = operations().weight_dtype(DType::kBFloat16);
  for (const int64_t num_tokens : {1, 7, 40, 300}) {
    RandomValues random(7);
    const DeviceTensor x = activations(random.normal(num_tokens * 1024), {num_tokens, 1024});
    const DeviceTensor weight = to_device(backend(), random.normal(264 * 1024), dtype, {264, 1024});
    std::vector<uint8_t> first;
    for (int run = 0; run < 20; ++run) {
      const DeviceTensor out = poisoned(backend(), activation(), {num_tokens, 264});
      operations().linear(out, x, weight);
      const auto bytes = bytes_of(backend(), out);
      if (run == 0) first = bytes;
      ASSERT_EQ(bytes, first) << "run " << run << ", " << num_tokens << " tokens";
    }
  }
}

TEST_P(LinearTest, NoTokensIsNoWork) {
  const DType dtype = operations().weight_dtype(DType::kBFloat16);
  const DeviceTensor weight = poisoned(backend(), dtype, {16, 8});
  const DeviceTensor x = poisoned(backend(), activation(), {0, 8});
  const DeviceTensor out = poisoned(backend(), activation(), {0, 16});
  EXPECT_NO_THROW(operations().linear(out, x, weight));
}

FOR_EACH_BACKEND(LinearTest);
FOR_EACH_VECTOR_LEVEL(LinearTest);

// CUDA refuses these, the CPU does not care.
TEST(CpuLinearTest, TakesAnyNumberOfInFeatures) {
  const auto backend = make_cpu_backend(2);
  for (const int64_t in_features : {1, 3, 15, 31, 33, 100, 131}) {
    for (const int64_t num_tokens : {1, 4, 40}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
        SCOPED_TRACE(testing::Message() << num_tokens << " x " << in_features);
        RandomValues random(9);
        const auto x = rounded(random.normal(num_tokens * in_features), DType::kFloat32);
        const auto weight = rounded(random.normal(37 * in_features), dtype);
        const Shape shape{num_tokens, 37};
        const DeviceTensor out = poisoned(*backend, DType::kFloat32, shape);
        backend->operations().linear(
            out, to_device(*backend, x, DType::kFloat32, {num_tokens, in_features}),
            to_device(*backend, weight, dtype, {37, in_features}));
        expect_close(to_host(*backend, out), reference_linear(x, weight, in_features), shape,
                     {.length = in_features});
      }
    }
  }
}

// Sizes that are worth sharing: weights streamed, and panels of one and of two blocks of tokens.
TEST(CpuLinearTest, ResultDoesNotDependOnThreads) {
  constexpr int64_t kIn = 256;
  constexpr int64_t kOut = 4099;
  const auto one = make_cpu_backend(1);
  const auto three = make_cpu_backend(3);
  for (const int64_t num_tokens : {3, 33, 513}) {
    RandomValues random(5);
    const auto x = random.normal(num_tokens * kIn);
    const auto weight = random.normal(kOut * kIn);
    const auto run = [&](Backend& backend) {
      const DeviceTensor out = poisoned(backend, DType::kFloat32, {num_tokens, kOut});
      backend.operations().linear(out, to_device(backend, x, DType::kFloat32, {num_tokens, kIn}),
                                  to_device(backend, weight, DType::kBFloat16, {kOut, kIn}));
      return bytes_of(backend, out);
    };
    EXPECT_EQ(run(*one), run(*three)) << num_tokens << " tokens";
  }
}

}  // namespace
}  // namespace tessera
