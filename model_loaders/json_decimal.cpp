#include "model_loaders/json_decimal.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

namespace tessera {
namespace {

bool is_digit(char character) { return character >= '0' && character <= '9'; }

// Digits as a whole number times a power of ten. Those that a uint64_t has no room for are dropped.
struct Decimal {
  uint64_t significand = 0;
  int64_t exponent = 0;
  bool is_full = false;

  void add_digit(char digit, bool is_fraction) {
    const auto value = static_cast<uint64_t>(digit - '0');
    is_full = is_full || significand > (UINT64_MAX - value) / 10;
    if (!is_full) significand = significand * 10 + value;
    // A digit of a fraction that counts, and one of a whole number that does not.
    if (is_fraction != is_full) exponent += is_fraction ? -1 : 1;
  }
};

// Reads digits, of which there must be one, off the front of `text`.
bool take_digits(std::string_view& text, bool is_fraction, Decimal& decimal) {
  const size_t before = text.size();
  for (; !text.empty() && is_digit(text[0]); text.remove_prefix(1)) {
    decimal.add_digit(text[0], is_fraction);
  }
  return text.size() < before;
}

bool take_exponent(std::string_view text, Decimal& decimal) {
  if (text.starts_with('+') && text.size() > 1 && is_digit(text[1])) text.remove_prefix(1);
  int32_t exponent = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), exponent);
  decimal.exponent += exponent;
  return problem == std::errc() && end == text.data() + text.size();
}

// Rounds twice where the significand has more than 53 bits.
double value_of(const Decimal& decimal) {
  constexpr int64_t kMaxPower = 308;
  auto value = static_cast<double>(decimal.significand);
  if (value == 0.0) return value;
  int64_t exponent = decimal.exponent;
  if (exponent > kMaxPower) return HUGE_VAL;
  for (; exponent < -kMaxPower && value > 0.0; exponent += kMaxPower) value /= 1e308;
  if (value == 0.0) return value;
  const double power = std::pow(10.0, static_cast<double>(std::abs(exponent)));
  return exponent < 0 ? value / power : value * power;
}

}  // namespace

std::optional<double> parse_json_decimal(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  Decimal decimal;
  const bool is_zero = text.starts_with('0');
  const size_t before = text.size();
  if (!take_digits(text, /*is_fraction=*/false, decimal)) return std::nullopt;
  if (is_zero && before - text.size() > 1) return std::nullopt;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!take_digits(text, /*is_fraction=*/true, decimal)) return std::nullopt;
  }
  const bool has_exponent = text.starts_with('e') || text.starts_with('E');
  if (has_exponent && !take_exponent(text.substr(1), decimal)) return std::nullopt;
  if (!has_exponent && !text.empty()) return std::nullopt;
  const double value = value_of(decimal);
  if (!std::isfinite(value)) return std::nullopt;
  return is_negative ? -value : value;
}

}  // namespace tessera
