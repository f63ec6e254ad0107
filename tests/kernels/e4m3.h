// e4m3 from its definition (OCP 8-bit Floating Point Specification), in double precision, apart
// from what kernels and kernels/tensor/dtype.h do.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/tensor/dtype.h"

namespace tessera {

inline constexpr uint8_t kNanE4M3 = 0x7f;

inline double e4m3_value(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const int mantissa = code & 7;
  const double sign = (code & 0x80) != 0 ? -1.0 : 1.0;
  if ((code & 0x7f) == kNanE4M3) return std::numeric_limits<double>::quiet_NaN();
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
}

// The nearest number's code; of two as near the one with an even mantissa. What is too large gets
// the largest number.
inline uint8_t nearest_e4m3(double value) {
  static const std::array<double, 127> numbers = [] {
    std::array<double, 127> result{};
    for (uint8_t code = 0; code < 127; ++code) result[code] = e4m3_value(code);
    return result;
  }();
  if (std::isnan(value)) return kNanE4M3;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::min(std::abs(value), numbers.back());
  const auto above = std::ranges::lower_bound(numbers, magnitude) - numbers.begin();
  auto code = static_cast<uint8_t>(above);
  if (above > 0) {
    const double to_above = numbers[code] - magnitude;
    const double to_below = magnitude - numbers[code - 1u];
    const bool takes_below = to_below < to_above || (to_below == to_above && code % 2 == 1);
    if (takes_below) --code;
  }
  return sign | code;
}

// scale * (what value / scale becomes in e4m3).
inline double rounded_e4m3(double value, double scale) {
  return scale * e4m3_value(nearest_e4m3(value / scale));
}

}  // namespace tessera
