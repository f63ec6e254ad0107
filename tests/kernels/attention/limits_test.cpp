// What only some backends support, no work at all, and the references themselves.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/attention/sizes.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

class AttentionLimitsTest : public AttentionTest {};

TEST_P(AttentionLimitsTest, NoTokensIsNoWork) {
  EXPECT_NO_THROW(AttentionProblem(backend(), {}, {}).run());
  EXPECT_NO_THROW(AttentionProblem(backend(), {}, {{0, 0}, {0, 70}}).run());
}

FOR_EACH_ATTENTION_BACKEND(AttentionLimitsTest);

constexpr ReferenceAttentionParams kParams{.num_heads = 2,
                                           .num_kv_heads = 1,
                                           .head_dim = 64,
                                           .scale = 0.125,
                                           .softcap = 20.0,
                                           .causal = true,
                                           .sliding_window = 0};

// 20 queries of 100 tokens, whose values both 16-bit types can hold.
ReferenceSequence random_sequence() {
  RandomValues random(1);
  const auto values = [&](int64_t count) {
    return rounded(rounded(random.normal(count), DType::kBFloat16), DType::kFloat16);
  };
  return {values(20 * 2 * 64), values(100 * 64), values(100 * 64)};
}

// The plain 16-bit implementation errs, and by no more than its roundings explain.
TEST(ReferenceAttentionTest, RoundedOneIsCloseToTheExactOne) {
  const ReferenceSequence sequence = random_sequence();
  const ReferenceAttentionParams& params = kParams;
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    const std::vector<double> exact = reference_attention(sequence, params).out.values;
    const std::vector<double> plain = rounded_attention(sequence, params, dtype);
    double largest = 0.0, error = 0.0;
    for (size_t i = 0; i < exact.size(); ++i) {
      largest = std::max(largest, std::abs(exact[i]));
      error = std::max(error, std::abs(plain[i] - exact[i]));
    }
    EXPECT_GT(error, 0.05 * unit_roundoff(dtype) * largest);
    EXPECT_LT(error, 2.0 * unit_roundoff(dtype) * largest);
  }
}

// The rule that scales itself tells weights of 8 bits from weights of 11.
TEST(ReferenceAttentionTest, CoarserWeightsAreFound) {
  const ReferenceSequence sequence = random_sequence();
  const std::vector<double> exact = reference_attention(sequence, kParams).out.values;
  const std::vector<double> plain = rounded_attention(sequence, kParams, DType::kFloat16);
  const std::vector<double> coarse = rounded_attention(sequence, kParams, DType::kBFloat16);
  const Shape shape{20, 2, 64};
  expect_as_exact(plain, exact, plain, 2.0, DType::kFloat16, shape);
  EXPECT_NONFATAL_FAILURE(expect_as_exact(coarse, exact, plain, 2.0, DType::kFloat16, shape),
                          "the largest error is that of [");
}

// Two keys whose scores differ by ln(3) share 1 to 3; a softcap of c turns ln(3) into
// c tanh(ln(3) / c).
TEST(ReferenceAttentionTest, IsTheFormula) {
  const double difference = std::log(3.0);
  const ReferenceSequence sequence{{1.0, 1.0}, {0.0, difference}, {10.0, 20.0}};
  ReferenceAttentionParams params{.num_heads = 1,
                                  .num_kv_heads = 1,
                                  .head_dim = 1,
                                  .scale = 1.0,
                                  .softcap = 0.0,
                                  .causal = true,
                                  .sliding_window = 0};
  const auto values = [&] { return reference_attention(sequence, params).out.values; };
  EXPECT_DOUBLE_EQ(values()[0], 10.0);
  EXPECT_DOUBLE_EQ(values()[1], 17.5);
  params.sliding_window = 1;
  EXPECT_DOUBLE_EQ(values()[1], 20.0);
  params.sliding_window = 0;
  params.causal = false;
  EXPECT_DOUBLE_EQ(values()[0], 17.5);
  params.softcap = 0.5;
  const double weight = std::exp(0.5 * std::tanh(difference / 0.5));
  EXPECT_DOUBLE_EQ(values()[0], (10.0 + 20.0 * weight) / (1.0 + weight));
}

}  // namespace
}  // namespace tessera
