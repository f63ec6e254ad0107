#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

// Blocks are 1024 threads wide, each of which looks at 8 logits at a time.
constexpr int64_t kLogprobVocabSizes[] = {1, 7, 31, 1023, 1024, 1025, 8192, 8193, 32000, 128256};

class LogprobsTest : public BackendTest {
 protected:
  struct Case {
    int64_t vocab_size = 0;
    int64_t num_candidates = 0;
    int64_t num_top = 0;
    std::vector<double> logits;  // [tokens.size(), vocab_size]
    std::vector<int32_t> tokens;
  };

  // Multiples of 1/64, so that equal logits are frequent; those that are no candidates are larger
  // than all others.
  static Case random_case(int64_t vocab_size, int64_t num_rows, int64_t num_top, double deviation) {
    RandomValues random(static_cast<uint64_t>(vocab_size + num_top));
    Case one = {.vocab_size = vocab_size,
                .num_candidates = vocab_size - vocab_size / 5,
                .num_top = num_top};
    one.logits = random.normal(num_rows * vocab_size, deviation);
    for (double& logit : one.logits) logit = std::round(logit * 64.0) / 64.0;
    for (int64_t row = 0; row < num_rows; ++row) {
      const auto begin = one.logits.begin() + row * vocab_size;
      std::fill(begin + one.num_candidates, begin + vocab_size, 1e6);
      one.tokens.push_back(static_cast<int32_t>(random.integer(0, one.num_candidates - 1)));
    }
    return one;
  }

  struct Result {
    std::vector<double> logprobs, top_tokens, top_logprobs;
  };

  // Outputs begin as NaN: what is not written shows.
  Result run(const Case& one) const {
    const auto num_rows = std::ssize(one.tokens);
    const Shape top{num_rows, one.num_top};
    const DeviceTensor logits = floats(one.logits, {num_rows, one.vocab_size});
    const DeviceTensor tokens = integers(one.tokens, {num_rows});
    const DeviceTensor logprobs = poisoned(backend(), DType::kFloat32, {num_rows});
    const DeviceTensor top_tokens = poisoned(backend(), DType::kInt32, top);
    const DeviceTensor top_logprobs = poisoned(backend(), DType::kFloat32, top);
    operations().logprobs(logits, {.tokens = tokens,
                                   .logprobs = logprobs,
                                   .top_tokens = top_tokens,
                                   .top_logprobs = top_logprobs,
                                   .num_candidates = one.num_candidates});
    if (one.num_top == 0) return {host(logprobs), {}, {}};
    return {host(logprobs), host(top_tokens), host(top_logprobs)};
  }

  void check(const Case& one) const {
    const Result result = run(one);
    for (int64_t row = 0; row < std::ssize(one.tokens); ++row) {
      SCOPED_TRACE(testing::Message() << "row " << row << " of vocab_size " << one.vocab_size);
      const auto begin = static_cast<size_t>(row * one.num_top);
      check_row(one, row, result.logprobs[static_cast<size_t>(row)],
                std::span(result.top_tokens).subspan(begin),
                std::span(result.top_logprobs).subspan(begin));
    }
  }

  static void check_row(const Case& one, int64_t row, double own, std::span<const double> best,
                        std::span<const double> of_best) {
    const std::span logits = std::span(one.logits)
                                 .subspan(static_cast<size_t>(row * one.vocab_size),
                                          static_cast<size_t>(one.num_candidates));
    const int32_t token = one.tokens[static_cast<size_t>(row)];
    if (token == kNonFiniteLogits) {
      EXPECT_TRUE(std::isnan(own));
      return;
    }
    const double log_sum = log_sum_exp(logits);
    expect_logprob(own, logits[static_cast<size_t>(token)], log_sum);
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    for (size_t rank = 0; rank < static_cast<size_t>(one.num_top); ++rank) {
      EXPECT_EQ(best[rank], order[rank]) << "rank " << rank;
      expect_logprob(of_best[rank], logits[static_cast<size_t>(order[rank])], log_sum);
    }
  }

  static double log_sum_exp(std::span<const double> logits) {
    const double largest = std::ranges::max(logits);
    double sum = 0.0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    return largest + std::log(sum);
  }

  // The logit less the largest is exact or rounded once, as are the difference from the logarithm
  // and the logarithm itself, whose argument is a sum in float32: of as many terms as a thread
  // adds, or as there are levels when threads are added up, all of them fewer than 300.
  static void expect_logprob(double logprob, double logit, double log_sum) {
    const double expected = logit - log_sum;
    EXPECT_NEAR(logprob, expected,
                0x1p-23 * (std::abs(expected) + 2.0 * std::abs(log_sum) + 300.0));
  }
};

TEST_P(LogprobsTest, MatchesReference) {
  for (const int64_t vocab_size : kLogprobVocabSizes) {
    for (const int64_t num_top : {0, 1, 5, 20}) {
      check(random_case(vocab_size, 3, std::min(num_top, vocab_size - vocab_size / 5), 4.0));
    }
  }
}

TEST_P(LogprobsTest, LargeLogitsDoNotOverflow) {
  check(random_case(1000, 2, 20, 3e4));
  Case one = {.vocab_size = 1000, .num_candidates = 1000, .tokens = {5, 0}};
  one.logits.assign(2000, -3e38);
  one.logits[5] = 3e38;
  const Result result = run(one);
  EXPECT_EQ(result.logprobs[0], 0.0) << "the only one that can be drawn";
  EXPECT_NEAR(result.logprobs[1], -std::log(1000.0), 1e-5) << "one of many equals";
}

// A model whose weights are broken: the token says so, and the rows beside it are as ever.
TEST_P(LogprobsTest, RowsWithoutATokenAreLeftAlone) {
  Case one = random_case(1025, 3, 5, 4.0);
  one.tokens[1] = kNonFiniteLogits;
  for (int64_t i = 0; i < 1025; ++i) {
    one.logits[static_cast<size_t>(1025 + i)] = std::numeric_limits<double>::quiet_NaN();
  }
  check(one);
}

TEST_P(LogprobsTest, EqualLogitsAreInTheOrderOfTheirIds) {
  Case one = random_case(3000, 2, 20, 4.0);
  std::ranges::fill(one.logits, 1.5);
  check(one);
}

FOR_EACH_BACKEND(LogprobsTest);

}  // namespace
}  // namespace tessera
