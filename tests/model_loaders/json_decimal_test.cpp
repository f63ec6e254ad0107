#include "model_loaders/json_decimal.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(JsonDecimal, ReadsWhatJsonWrites) {
  EXPECT_EQ(parse_json_decimal("0"), 0.0);
  EXPECT_EQ(parse_json_decimal("-12"), -12.0);
  EXPECT_EQ(parse_json_decimal("-0.5"), -0.5);
  EXPECT_EQ(parse_json_decimal("2.5e3"), 2500.0);
  EXPECT_EQ(parse_json_decimal("1E+2"), 100.0);
  EXPECT_EQ(parse_json_decimal("25e-2"), 0.25);
  EXPECT_EQ(parse_json_decimal("0e400"), 0.0);
  EXPECT_EQ(parse_json_decimal("1e-400"), 0.0);
}

// Python prints these of what the tokenizers library read: the nearest doubles end in 3 and in 8.
TEST(JsonDecimal, RoundsAsTheLibraryDoes) {
  EXPECT_EQ(parse_json_decimal("-11.053184011006493"), -11.053184011006492);
  EXPECT_EQ(parse_json_decimal("-9.225502647328135"), -9.225502647328137);
}

TEST(JsonDecimal, DigitsBeyondANumberAreDropped) {
  EXPECT_EQ(parse_json_decimal("100000000000000000000000"), 1e23);
  EXPECT_EQ(parse_json_decimal("0.500000000000000000000000001"), 0.5);
}

TEST(JsonDecimal, AnythingElseIsNothing) {
  for (const char* const text :
       {"", "-", "+1", ".5", "1.", "01", "1e", "1e+", "1e+-2", "1x", "1 ", "nan", "1e309",
        "-1e999999999", "1e99999999999999999999", "\"1\"", "[1]"}) {
    EXPECT_EQ(parse_json_decimal(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tessera
