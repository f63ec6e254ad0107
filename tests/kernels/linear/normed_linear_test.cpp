// Operations that hand RMSNorm's result from product to product, compared with the single
// operations that they stand for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/linear/normed_rows.h"
#include "tests/kernels/num_repeats.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

// Up to 64 tokens have kernels of their own on CUDA.
constexpr int64_t kNormedTokenCounts[] = {8, 9, 17, 40, 64, 65};

struct NormedSizes {
  int64_t hidden;
  int64_t in_features;   // of the product that is added to the residual stream
  int64_t out_features;  // of the product that reads the norm
  int64_t intermediate;
  int64_t least_tokens = 1;
};
// Hidden sizes that pass without the norm's scale, divided in every way (see linear/plan.h), and
// some that do not; 4,096, from which on scales are computed another way, and the one before it
// (see linear/skinny/scales.cuh); tiles that four, five and six blocks share. Results that no tile
// divides. Inputs of every product that are whole panels of 64 features, and inputs that are not.
// Last an intermediate size with which 65 tokens fill an H100 or H200 (see linear/gated/plan.h).
constexpr NormedSizes kNormedSizes[] = {
    {256, 8, 40, 24},    {512, 520, 129, 57}, {1152, 136, 96, 1000},  {8576, 264, 72, 8},
    {40, 136, 72, 40},   {5120, 264, 56, 24}, {128, 264, 7001, 7004}, {17024, 256, 16, 8},
    {384, 4104, 40, 24}, {640, 1000, 24, 8},  {256, 200, 24, 40},     {512, 576, 40, 57},
    {1152, 72, 40, 24},  {72, 200, 40, 24},   {200, 72, 131, 1000},   {1000, 192, 40, 72},
    {4104, 72, 56, 24},  {3968, 72, 40, 24},  {4096, 72, 40, 24},     {3072, 520, 24, 8},
    {2560, 648, 24, 8},  {2048, 776, 24, 8},  {40, 8, 40, 12672, 65}};

class NormedLinearTest : public BackendTest {
 protected:
  DType weight_type() const { return operations().weight_dtype(DType::kBFloat16); }

  DeviceTensor matrix(const std::vector<double>& values, int64_t rows, int64_t columns) const {
    return to_device(backend(), values, weight_type(), {rows, columns});
  }
};

TEST_P(NormedLinearTest, MatchesReference) {
  for (const NormedSizes& sizes : kNormedSizes) {
    RandomValues random_weights(static_cast<uint64_t>(sizes.hidden));
    const auto added =
        rounded(random_weights.normal(sizes.hidden * sizes.in_features, 0.05), weight_type());
    const auto norm_weight = norm_weights(random_weights, sizes.hidden);
    const auto weight =
        rounded(random_weights.normal(sizes.out_features * sizes.hidden, 0.05), weight_type());
    const auto gate_up =
        rounded(random_weights.normal(2 * sizes.intermediate * sizes.hidden, 0.05), weight_type());
    const DeviceTensor device_added = matrix(added, sizes.hidden, sizes.in_features);
    const DeviceTensor device_norm_weight = floats(norm_weight, {sizes.hidden});
    const DeviceTensor device_weight = matrix(weight, sizes.out_features, sizes.hidden);
    const DeviceTensor device_gate_up = matrix(gate_up, 2 * sizes.intermediate, sizes.hidden);
    for (const int64_t num_tokens : kNormedTokenCounts) {
      if (num_tokens < sizes.least_tokens) continue;
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, hidden size " << sizes.hidden);
      RandomValues random(static_cast<uint64_t>(num_tokens));
      // Rows of different sizes, so that a row's scale shows.
      auto residual = random.normal(num_tokens * sizes.hidden);
      for (size_t i = 0; i < residual.size(); ++i) {
        residual[i] *=
            std::pow(1.3, static_cast<double>(i / static_cast<size_t>(sizes.hidden)) - 20.0);
      }
      residual = rounded(residual, DType::kFloat32);
      const auto x = rounded(random.normal(num_tokens * sizes.in_features, 0.1), activation());
      const DeviceTensor sum = floats(residual, {num_tokens, sizes.hidden});
      const PoisonedRows rows(backend(), num_tokens, sizes.hidden);

      const auto check_rows = [&](const PoisonedRows& rows, const std::vector<double>& stream) {
        const Shape shape{num_tokens, sizes.out_features};
        const DeviceTensor out = poisoned(backend(), activation(), shape);
        fused().normed_linear(out, rows.view(), device_weight);
        const auto normed = reference_rms_norm(stream, norm_weight, kNormEpsilon).values;
        const double relative = norm_error(activation(), sizes.hidden);
        expect_close(host(out), reference_linear(normed, weight, sizes.hidden), shape,
                     {.out = activation(), .length = sizes.hidden, .relative = relative});

        const Reference both = reference_linear(normed, gate_up, sizes.hidden);
        for (const Activation of_gate : {Activation::kSilu, Activation::kGeluTanh}) {
          const Shape hidden_shape{num_tokens, sizes.intermediate};
          const DeviceTensor hidden = poisoned(backend(), activation(), hidden_shape);
          const DeviceTensor scratch =
              poisoned(backend(), activation(), {num_tokens, 2 * sizes.intermediate});
          fused().normed_linear_activate_mul(hidden, rows.view(), device_gate_up, scratch, of_gate);
          Reference expected = reference_activate_mul(both.values, sizes.intermediate, of_gate);
          // |silu'| <= 1.1, |gelu'| <= 1.13: errors of the gate count with `up`, errors of `up`
          // with the activation.
          for (int64_t i = 0; i < num_tokens * sizes.intermediate; ++i) {
            const int64_t gate =
                i / sizes.intermediate * 2 * sizes.intermediate + i % sizes.intermediate;
            const auto at = [](const std::vector<double>& values, int64_t index) {
              return std::abs(values[static_cast<size_t>(index)]);
            };
            const int64_t up = gate + sizes.intermediate;
            // Both may have been rounded to the activation type, relative to their values.
            const double rounding = unit_roundoff(activation()) / relative;
            expected.magnitudes[static_cast<size_t>(i)] =
                1.13 * (at(both.magnitudes, gate) + rounding * at(both.values, gate)) *
                    (at(both.values, up) + relative * at(both.magnitudes, up)) +
                at(both.values, gate) * (at(both.magnitudes, up) + rounding * at(both.values, up));
          }
          expect_close(host(hidden), expected, hidden_shape,
                       {.out = activation(), .length = sizes.hidden, .relative = relative});
        }
      };
      const auto check = [&](const std::vector<double>& stream) { check_rows(rows, stream); };
      {
        SCOPED_TRACE("normalize");
        fused().begin_norm(rows.view(), sum, device_norm_weight);
        check(residual);
      }
      {
        SCOPED_TRACE("linear_add_normalize");
        const PoisonedRows poison(backend(), num_tokens, sizes.hidden);
        fused().linear_add_begin_norm(sum, rows.view(),
                                      activations(x, {num_tokens, sizes.in_features}), device_added,
                                      device_norm_weight);
        const Reference stream = reference_linear(x, added, sizes.in_features, residual);
        expect_close(host(sum), stream, {num_tokens, sizes.hidden},
                     {.length = sizes.in_features + 1});
        check(host(sum));
      }
      {
        SCOPED_TRACE("rms_norm_add_normalize");
        const PoisonedRows poison(backend(), num_tokens, sizes.hidden);
        constexpr float kMultiplier = 0.25f;
        const std::vector<double> before = host(sum);
        const auto half = rounded(random.normal(num_tokens * sizes.hidden, 3.0), DType::kFloat32);
        const auto post_norm = norm_weights(random, sizes.hidden);
        fused().rms_norm_add_begin_norm(
            sum, poison.view(), floats(half, {num_tokens, sizes.hidden}),
            floats(post_norm, {sizes.hidden}), device_norm_weight, kMultiplier);
        Reference stream = reference_rms_norm(half, post_norm, kNormEpsilon);
        for (size_t i = 0; i < before.size(); ++i) {
          stream.values[i] = before[i] + kMultiplier * stream.values[i];
          stream.magnitudes[i] = std::abs(before[i]) + kMultiplier * stream.magnitudes[i];
        }
        expect_close(host(sum), stream, {num_tokens, sizes.hidden}, {.length = sizes.hidden});
        check_rows(poison, host(sum));
      }
    }
  }
}

// On Hopper, products of some hundred tokens leave parts that the norm adds to the residual stream
// (residual_parts() in linear/plan.h), but not those of 241 tokens nor of 72 in_features.
TEST_P(NormedLinearTest, ProductsInParts) {
  constexpr float kMultiplier = 0.25f;
  for (const auto& [hidden, in_features] :
       {std::pair{40, 128}, std::pair{1152, 640}, std::pair{1152, 72}, std::pair{8576, 128}}) {
    for (const int64_t num_tokens : {65, 240, 241}) {
      SCOPED_TRACE(testing::Message()
                   << num_tokens << " tokens, " << hidden << " x " << in_features);
      RandomValues random(static_cast<uint64_t>(num_tokens));
      const Shape shape{num_tokens, hidden};
      const auto residual = rounded(random.normal(num_tokens * hidden), DType::kFloat32);
      const auto x = rounded(random.normal(num_tokens * in_features), activation());
      const auto added = rounded(random.normal(hidden * in_features), weight_type());
      const auto norm_weight = norm_weights(random, hidden);
      const DeviceTensor sum = floats(residual, shape);
      const PoisonedRows rows(backend(), num_tokens, hidden);
      fused().linear_add_begin_norm(sum, rows.view(), activations(x, {num_tokens, in_features}),
                                    matrix(added, hidden, in_features),
                                    floats(norm_weight, {hidden}), kMultiplier);
      Reference stream = reference_linear(x, added, in_features);
      for (size_t i = 0; i < residual.size(); ++i) {
        stream.values[i] = residual[i] + kMultiplier * stream.values[i];
        stream.magnitudes[i] = std::abs(residual[i]) + kMultiplier * stream.magnitudes[i];
      }
      expect_close(host(sum), stream, shape, {.length = in_features + 2});
      expect_close(host(rows.view().values),
                   reference_rms_norm(host(sum), norm_weight, kNormEpsilon), shape,
                   {.out = activation(), .length = hidden});
    }
  }
}

// A token's results must not depend on others, nor on how many there are within one kernel.
TEST_P(NormedLinearTest, IgnoresOtherTokens) {
  if (!runs_hopper()) GTEST_SKIP() << "what Hopper's kernels promise";
  for (const NormedSizes& sizes : kNormedSizes) {
    RandomValues random(17);
    const auto residual = random.normal(64 * sizes.hidden);
    const DeviceTensor x =
        activations(random.normal(64 * sizes.in_features, 0.1), {64, sizes.in_features});
    const DeviceTensor added = matrix(random.normal(sizes.hidden * sizes.in_features, 0.05),
                                      sizes.hidden, sizes.in_features);
    const DeviceTensor norm_weight = floats(random.normal(sizes.hidden), {sizes.hidden});
    const DeviceTensor weight = matrix(random.normal(sizes.out_features * sizes.hidden, 0.05),
                                       sizes.out_features, sizes.hidden);
    const DeviceTensor gate_up = matrix(random.normal(2 * sizes.intermediate * sizes.hidden, 0.05),
                                        2 * sizes.intermediate, sizes.hidden);
    std::vector<std::vector<uint8_t>> of_all;
    for (const int64_t num_tokens : {64, 63, 33, 17, 9}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, hidden size " << sizes.hidden
                                      << ", in_features " << sizes.in_features);
      const DeviceTensor sum =
          floats({residual.begin(), residual.begin() + num_tokens * sizes.hidden},
                 {num_tokens, sizes.hidden});
      const PoisonedRows rows(backend(), num_tokens, sizes.hidden);
      const DeviceTensor out = poisoned(backend(), activation(), {num_tokens, sizes.out_features});
      const DeviceTensor hidden =
          poisoned(backend(), activation(), {num_tokens, sizes.intermediate});
      const DeviceTensor scratch =
          poisoned(backend(), activation(), {num_tokens, 2 * sizes.intermediate});
      fused().linear_add_begin_norm(sum, rows.view(), x.view.slice(0, num_tokens), added,
                                    norm_weight);
      fused().normed_linear(out, rows.view(), weight);
      fused().normed_linear_activate_mul(hidden, rows.view(), gate_up, scratch, Activation::kSilu);
      const std::vector<std::vector<uint8_t>> results = {
          bytes_of(backend(), sum), bytes_of(backend(), out), bytes_of(backend(), hidden)};
      if (of_all.empty()) of_all = results;
      for (size_t i = 0; i < results.size(); ++i) {
        ASSERT_TRUE(std::equal(results[i].begin(), results[i].end(), of_all[i].begin())) << i;
      }
    }
  }
}

// A chain as in a model, queued without a wait, so that launches overlap.
TEST_P(NormedLinearTest, IsBitwiseRepeatable) {
  constexpr int64_t kHidden = 4096;
  constexpr int64_t kIntermediate = 1000;
  const int64_t repeats = device().type() == DeviceType::kCuda ? num_repeats(10) : 2;
  for (const int64_t num_tokens : {9, 40, 64}) {
    SCOPED_TRACE(num_tokens);
    RandomValues random(5);
    const DeviceTensor norm_weight = floats(random.normal(kHidden), {kHidden});
    const DeviceTensor gate_up =
        matrix(random.normal(2 * kIntermediate * kHidden, 0.02), 2 * kIntermediate, kHidden);
    const DeviceTensor down =
        matrix(random.normal(kHidden * kIntermediate, 0.05), kHidden, kIntermediate);
    const std::vector<double> start = random.normal(num_tokens * kHidden);
    const PoisonedRows rows(backend(), num_tokens, kHidden);
    const DeviceTensor hidden = poisoned(backend(), activation(), {num_tokens, kIntermediate});
    const DeviceTensor scratch = poisoned(backend(), activation(), {num_tokens, 2 * kIntermediate});
    std::vector<uint8_t> first;
    for (int64_t run = 0; run < repeats; ++run) {
      const DeviceTensor residual = floats(start, {num_tokens, kHidden});
      fused().begin_norm(rows.view(), residual, norm_weight);
      for (int layer = 0; layer < 6; ++layer) {
        fused().normed_linear_activate_mul(hidden, rows.view(), gate_up, scratch,
                                           Activation::kSilu);
        fused().linear_add_begin_norm(residual, rows.view(), hidden, down, norm_weight);
      }
      const auto bytes = bytes_of(backend(), residual);
      if (run == 0) first = bytes;
      ASSERT_EQ(bytes, first) << "run " << run;
    }
  }
}

FOR_EACH_BACKEND(NormedLinearTest);

}  // namespace
}  // namespace tessera
