// Which values a number may have that comes from a file, a flag or a request: the rule and its
// words in one, so that every place that refuses a number says the same.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// Which values between the limits, both of them included, are allowed.
enum class Allowed : uint8_t {
  kAll,
  kAllAndZero,   // 0 lies outside and turns something off
  kAllAboveLow,  // low itself is not
  kPowersOfTwo,
};

// `Number` is int64_t, uint64_t or double.
template <typename Number>
struct NumberLimits {
  Number low{};
  Number high{};
  Allowed allowed = Allowed::kAll;

  // NaN is not allowed by any limits: it fails every comparison.
  constexpr bool allow(Number value) const {
    if (allowed == Allowed::kAllAndZero && value == Number{0}) return true;
    if (!(value >= low && value <= high)) return false;
    if (allowed == Allowed::kAllAboveLow) return value > low;
    return allowed != Allowed::kPowersOfTwo || is_power_of_two(value);
  }

  // What follows "must be": "an integer in 0..64", "0 or a number in 0.01..100", "16, 32 or 64".
  std::string text() const {
    if (allowed == Allowed::kPowersOfTwo) return list_of_powers();
    constexpr const char* kNoun = std::integral<Number> ? "an integer" : "a number";
    if (allowed == Allowed::kAllAboveLow)
      return concat(kNoun, " above ", low, " and at most ", high);
    return concat(allowed == Allowed::kAllAndZero ? "0 or " : "", kNoun, " in ", low, "..", high);
  }

 private:
  static constexpr bool is_power_of_two(Number value) {
    Number power = 1;
    while (power < value) power *= 2;
    return power == value;
  }

  std::string list_of_powers() const {
    std::string list;
    for (Number power = low; power <= high; power *= 2) {
      list += concat(list.empty() ? "" : power * 2 > high ? " or " : ", ", power);
    }
    return list;
  }
};

// The shortest text that reads as the same number, where concat() would round to six digits.
std::string exact_text(double number);
inline std::string exact_text(std::integral auto number) { return std::to_string(number); }

// Throws Error "`name` must be ..., got `value`".
template <typename Number>
void check_limits(std::string_view name, Number value, const NumberLimits<Number>& limits) {
  CHECK(limits.allow(value), name, " must be ", limits.text(), ", got ", exact_text(value));
}

}  // namespace tessera
