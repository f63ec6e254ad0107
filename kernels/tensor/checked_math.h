// Arithmetic on sizes that come from files or users. Every product and sum of such numbers goes
// through here, so that an overflow is an Error and never a small allocation.
#pragma once

#include <concepts>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

// a * b, or an Error that names `what` when the product does not fit the type.
template <std::integral T>
T checked_multiply(T a, T b, std::string_view what) {
  T result;
  CHECK(!__builtin_mul_overflow(a, b, &result), what, " is too large: ", a, " * ", b, " overflows");
  return result;
}

// a + b, or an Error that names `what` when the sum does not fit the type.
template <std::integral T>
T checked_add(T a, T b, std::string_view what) {
  T result;
  CHECK(!__builtin_add_overflow(a, b, &result), what, " is too large: ", a, " + ", b, " overflows");
  return result;
}

// The smallest multiple of `alignment` that is >= value; alignment > 0.
template <std::integral T>
T checked_round_up(T value, T alignment, std::string_view what) {
  const T padded = checked_add(value, static_cast<T>(alignment - 1), what);
  return padded - padded % alignment;
}

// ceil(a / b) for a >= 0, b > 0.
template <std::integral T>
constexpr T ceil_divide(T a, T b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace tessera
