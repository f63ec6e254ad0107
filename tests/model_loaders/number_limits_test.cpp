#include "model_loaders/number_limits.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

TEST(NumberLimits, HoldTheirEnds) {
  constexpr NumberLimits<int64_t> kLimits = {1, 64};
  EXPECT_TRUE(kLimits.allow(1));
  EXPECT_TRUE(kLimits.allow(64));
  EXPECT_FALSE(kLimits.allow(0));
  EXPECT_FALSE(kLimits.allow(65));
  EXPECT_EQ(kLimits.text(), "an integer in 1..64");
}

TEST(NumberLimits, MayAllowZeroBesideTheRange) {
  constexpr NumberLimits<double> kLimits = {0.01, 100.0, Allowed::kAllAndZero};
  EXPECT_TRUE(kLimits.allow(0.0));
  EXPECT_FALSE(kLimits.allow(0.001));
  EXPECT_FALSE(kLimits.allow(std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(kLimits.text(), "0 or a number in 0.01..100");
}

TEST(NumberLimits, MayLeaveOutTheLowerEnd) {
  constexpr NumberLimits<double> kLimits = {0.0, 1.0, Allowed::kAllAboveLow};
  EXPECT_FALSE(kLimits.allow(0.0));
  EXPECT_TRUE(kLimits.allow(1e-300));
  EXPECT_TRUE(kLimits.allow(1.0));
  EXPECT_EQ(kLimits.text(), "a number above 0 and at most 1");
}

TEST(NumberLimits, MayBePowersOfTwo) {
  constexpr NumberLimits<int64_t> kLimits = {16, 256, Allowed::kPowersOfTwo};
  EXPECT_TRUE(kLimits.allow(16));
  EXPECT_TRUE(kLimits.allow(256));
  for (const int64_t value : {-1, 0, 8, 63, 96, 512}) EXPECT_FALSE(kLimits.allow(value)) << value;
  EXPECT_EQ(kLimits.text(), "16, 32, 64, 128 or 256");
}

TEST(NumberLimits, QuoteWithoutRounding) {
  const auto message = [](double value) {
    return thrown_error([&] { check_limits<double>("top_p", value, {0.0, 1.0}); }).message;
  };
  EXPECT_EQ(message(1.0000001), "top_p must be a number in 0..1, got 1.0000001");
  EXPECT_EQ(message(0.5), "");
}

}  // namespace
}  // namespace tessera
