#include "tests/kernels/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace tessera {
namespace {

// The largest result that a kernel may turn into zero: half a float16 subnormal, or what exp() of
// the GPU no longer reaches.
double underflow(DType dtype) { return dtype == DType::kFloat16 ? 0x1p-24 : 0x1p-116; }

// "[2, 0, 17]": the place of element `flat` in a tensor of `shape`.
std::string index_of(size_t flat, const Shape& shape) {
  std::string text;
  auto rest = static_cast<int64_t>(flat);
  for (int i = shape.rank() - 1; i >= 0; --i) {
    text = concat(rest % shape[i], text.empty() ? "" : ", ", text);
    rest /= shape[i];
  }
  return concat('[', text, ']');
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    default:
      return 0x1p-24;
  }
}

void expect_close(const std::vector<double>& actual, const Reference& reference, const Shape& shape,
                  const ErrorBound& bound) {
  ASSERT_EQ(actual.size(), reference.values.size());
  ASSERT_EQ(actual.size(), reference.magnitudes.size());
  const double of_result = 2.0 * unit_roundoff(bound.out);
  const double of_sum =
      2.0 * unit_roundoff(DType::kFloat32) * std::sqrt(static_cast<double>(bound.length)) +
      bound.relative;
  const auto allowed = [&](size_t i) {
    return of_result * std::abs(reference.values[i]) + of_sum * reference.magnitudes[i] +
           underflow(bound.out) + bound.absolute;
  };
  size_t worst = 0;
  size_t num_wrong = 0;
  double worst_excess = -1.0;  // error as a multiple of the allowed one
  for (size_t i = 0; i < actual.size(); ++i) {
    double excess = std::abs(actual[i] - reference.values[i]) / allowed(i);
    if (std::isnan(excess)) excess = std::numeric_limits<double>::infinity();
    num_wrong += excess > 1.0 ? 1 : 0;
    if (excess > worst_excess) {
      worst_excess = excess;
      worst = i;
    }
  }
  if (num_wrong > 0) {
    ADD_FAILURE() << num_wrong << " of " << actual.size() << " elements of " << shape
                  << " are wrong; worst at " << index_of(worst, shape) << ": " << actual[worst]
                  << ", expected " << reference.values[worst] << " +- " << allowed(worst) << " ("
                  << worst_excess << " times the allowed error)";
  }
}

void expect_as_exact(const std::vector<double>& actual, const std::vector<double>& reference,
                     const std::vector<double>& plain, double factor, DType dtype,
                     const Shape& shape) {
  ASSERT_EQ(actual.size(), reference.size());
  ASSERT_EQ(plain.size(), reference.size());
  double largest_result = 0.0;
  double of_plain = 0.0;
  double largest_error = 0.0;
  size_t worst = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    largest_result = std::max(largest_result, std::abs(reference[i]));
    of_plain = std::max(of_plain, std::abs(plain[i] - reference[i]));
    double error = std::abs(actual[i] - reference[i]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    if (error <= largest_error) continue;
    largest_error = error;
    worst = i;
  }
  const double allowed = factor * of_plain + unit_roundoff(dtype) * largest_result;
  if (largest_error > allowed) {
    ADD_FAILURE() << "the largest error is that of " << index_of(worst, shape) << ": "
                  << actual[worst] << ", expected " << reference[worst] << " +- " << allowed
                  << "; the same roundings in a plain implementation cost at most " << of_plain;
  }
}

void expect_equal(const std::vector<double>& actual, const std::vector<double>& expected,
                  const Shape& shape) {
  ASSERT_EQ(actual.size(), expected.size());
  size_t num_wrong = 0;
  size_t first = 0;
  for (size_t i = actual.size(); i-- > 0;) {
    if (actual[i] == expected[i]) continue;
    ++num_wrong;
    first = i;
  }
  if (num_wrong > 0) {
    ADD_FAILURE() << num_wrong << " of " << actual.size() << " elements of " << shape
                  << " differ; first at " << index_of(first, shape) << ": " << actual[first]
                  << ", expected " << expected[first];
  }
}

}  // namespace tessera
