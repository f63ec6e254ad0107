// Products of 1 to 64 tokens, which kernels of their own compute on CUDA.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/num_repeats.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

// How often each case runs. Races hide from a few runs: ask for 1,000 on a GPU.
struct MatrixSize {
  int64_t out_features;
  int64_t in_features;
};

// Rows and features that no tile divides, for every way to divide the work (see linear/plan.h): of
// whole panels of 64 features and not.
constexpr MatrixSize kMatrixSizes[] = {{40, 136},    {257, 8},    {300, 8200}, {1000, 1032},
                                       {6152, 520},  {7001, 264}, {40008, 72}, {65, 33000},
                                       {131, 1000},  {264, 200},  {520, 4104}, {40, 192},
                                       {1000, 1088}, {6152, 576}, {65, 33024}};
constexpr int64_t kFewTokenCounts[] = {1, 8, 9, 15, 16, 17, 33, 63, 64};

class LinearFewTokensTest : public BackendTest {
 protected:
  DType weight_type() const { return operations().weight_dtype(DType::kBFloat16); }
};

// One run with 64 tokens is compared with the reference, and all others with its first tokens: a
// token's result must not depend on others, nor on how many there are within one kernel.
TEST_P(LinearFewTokensTest, MatchesReferenceAndIgnoresOtherTokens) {
  for (const MatrixSize& size : kMatrixSizes) {
    RandomValues random(11);
    const auto x = rounded(random.normal(64 * size.in_features), activation());
    const auto weight =
        rounded(random.normal(size.out_features * size.in_features, 0.05), weight_type());
    const DeviceTensor device_x = activations(x, {64, size.in_features});
    const DeviceTensor device_weight =
        to_device(backend(), weight, weight_type(), {size.out_features, size.in_features});
    // The reference takes the time of this test: of large matrices it has two tokens, the last.
    const int64_t checked =
        size.out_features * size.in_features > 1'000'000 ? int64_t{2} : int64_t{64};
    const std::vector<double> last(x.end() - checked * size.in_features, x.end());
    const Reference reference = reference_linear(last, weight, size.in_features);
    for (const DType out_dtype : {activation(), DType::kFloat32}) {
      std::vector<uint8_t> of_all;
      for (const int64_t num_tokens : {64, 63, 33, 17, 16, 15, 9}) {
        SCOPED_TRACE(testing::Message() << num_tokens << " tokens, " << size.in_features << " -> "
                                        << size.out_features << ", out " << to_string(out_dtype));
        const DeviceTensor out = poisoned(backend(), out_dtype, {num_tokens, size.out_features});
        operations().linear(out, device_x.view.slice(0, num_tokens), device_weight);
        const auto bytes = bytes_of(backend(), out);
        if (num_tokens == 64) {
          of_all = bytes;
          const auto values = host(out);
          expect_close({values.end() - checked * size.out_features, values.end()}, reference,
                       {checked, size.out_features},
                       {.out = out_dtype, .length = size.in_features});
        }
        if (runs_hopper()) {
          ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), of_all.begin()));
        }
      }
    }
  }
}

TEST_P(LinearFewTokensTest, AddsToTheResidual) {
  for (const MatrixSize& size :
       {MatrixSize{40, 136}, MatrixSize{1000, 1032}, MatrixSize{6152, 72}, MatrixSize{131, 4104},
        MatrixSize{40, 192}, MatrixSize{264, 200}, MatrixSize{6152, 64}, MatrixSize{131, 4160}}) {
    for (const int64_t num_tokens : kFewTokenCounts) {
      SCOPED_TRACE(testing::Message()
                   << num_tokens << " tokens, " << size.in_features << " -> " << size.out_features);
      RandomValues random(static_cast<uint64_t>(num_tokens));
      const auto x = rounded(random.normal(num_tokens * size.in_features), activation());
      const auto weight =
          rounded(random.normal(size.out_features * size.in_features, 0.05), weight_type());
      const Shape shape{num_tokens, size.out_features};
      const auto residual =
          rounded(random.normal(num_tokens * size.out_features, 4.0), DType::kFloat32);
      const DeviceTensor sum = floats(residual, shape);
      operations().linear_add(
          sum, activations(x, {num_tokens, size.in_features}),
          to_device(backend(), weight, weight_type(), {size.out_features, size.in_features}));
      expect_close(host(sum), reference_linear(x, weight, size.in_features, residual), shape,
                   {.out = DType::kFloat32, .length = size.in_features + 1});
    }
  }
}

// Tokens beyond the last and features beyond the end are not read: they are NaN here.
TEST_P(LinearFewTokensTest, ReadsNothingBeyondTheTensors) {
  constexpr int64_t kOut = 200;
  RandomValues random(3);
  for (const int64_t in_features : {72, 136, 192}) {
    const DeviceTensor all_x = poisoned(backend(), activation(), {80, in_features});
    const DeviceTensor all_weight = poisoned(backend(), weight_type(), {300, in_features});
    for (const int64_t num_tokens : kFewTokenCounts) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, " << in_features << " features");
      const auto x = rounded(random.normal(num_tokens * in_features), activation());
      const auto weight = rounded(random.normal(kOut * in_features, 0.05), weight_type());
      const auto host_copy = [&](const Tensor& target, const std::vector<double>& values) {
        std::vector<float> singles(values.begin(), values.end());
        device().upload(target, {singles.data(), DType::kFloat32, DeviceType::kCpu, target.shape});
      };
      const Tensor part_x = all_x.view.slice(0, num_tokens);
      const Tensor part_weight = all_weight.view.slice(0, kOut);
      host_copy(part_x, x);
      host_copy(part_weight, weight);
      const DeviceTensor all_out = poisoned(backend(), DType::kFloat32, {80, kOut});
      operations().linear(all_out.view.slice(0, num_tokens), part_x, part_weight);
      const auto values = host(all_out);
      const auto end = values.begin() + num_tokens * kOut;
      expect_close({values.begin(), end}, reference_linear(x, weight, in_features),
                   {num_tokens, kOut}, {.length = in_features});
      EXPECT_TRUE(std::all_of(end, values.end(), [](double value) { return std::isnan(value); }));
    }
  }
}

// Results queue up on the device without a wait between them, so that launches overlap.
TEST_P(LinearFewTokensTest, IsBitwiseRepeatable) {
  const int64_t repeats = device().type() == DeviceType::kCuda ? num_repeats(20) : 2;
  for (const MatrixSize& size : {MatrixSize{264, 4096}, MatrixSize{1000, 520},
                                 MatrixSize{520, 4104}, MatrixSize{600, 16384}}) {
    for (const int64_t num_tokens : {1, 9, 64}) {
      SCOPED_TRACE(testing::Message()
                   << num_tokens << " tokens, " << size.in_features << " -> " << size.out_features);
      RandomValues random(7);
      const DeviceTensor x =
          activations(random.normal(num_tokens * size.in_features), {num_tokens, size.in_features});
      const DeviceTensor weight =
          to_device(backend(), random.normal(size.out_features * size.in_features), weight_type(),
                    {size.out_features, size.in_features});
      constexpr int64_t kQueued = 10;
      std::vector<uint8_t> first;
      for (int64_t run = 0; run < repeats; run += kQueued) {
        const DeviceTensor out =
            poisoned(backend(), activation(), {kQueued * num_tokens, size.out_features});
        for (int64_t i = 0; i < kQueued; ++i) {
          operations().linear(out.view.slice(i * num_tokens, (i + 1) * num_tokens), x, weight);
        }
        const auto bytes = bytes_of(backend(), out);
        const size_t one = bytes.size() / kQueued;
        if (run == 0) first.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(one));
        for (size_t begin = 0; begin < bytes.size(); begin += one) {
          ASSERT_TRUE(
              std::equal(first.begin(), first.end(), bytes.begin() + static_cast<ptrdiff_t>(begin)))
              << "run " << run << " and " << begin / one;
        }
      }
    }
  }
}

FOR_EACH_BACKEND(LinearFewTokensTest);

}  // namespace
}  // namespace tessera
