// Loops on the widest vectors the machine has, without writing them once per instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/cpu/vector_level.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

// Vectors of as many lanes. Functions take and fill them by reference, because how a vector is
// passed by value depends on the instruction set.
template <int kLanes>
struct VectorOf {
  // GCC 12 ignores a size that depends on a template's argument in a using-declaration.
  typedef float Floats __attribute__((vector_size(4 * kLanes)));
  typedef uint32_t Bits __attribute__((vector_size(4 * kLanes)));
  typedef int32_t Integers __attribute__((vector_size(4 * kLanes)));
  typedef uint16_t HalfBits __attribute__((vector_size(2 * kLanes)));
  typedef uint8_t ByteBits __attribute__((vector_size(kLanes)));
};
template <typename Floats>
inline constexpr int kLanesOf = sizeof(Floats) / sizeof(float);

namespace vectors_detail {

template <typename Narrow, typename Wide, int... kPart>
VECTOR_INLINE void widen_bits(const Narrow& narrow, Wide& wide,
                              std::integer_sequence<int, kPart...>) {
  constexpr int kElements = sizeof...(kPart) / 2;
  wide = (Wide)__builtin_shufflevector(narrow, Narrow{}, (kPart / 2 + kPart % 2 * kElements)...);
}

}  // namespace vectors_detail

// wide = the unsigned integers of `narrow`, each in twice as many bits. They are interleaved with
// zeros, which are the upper halves where bytes are little-endian. GCC 12 compiles this to the one
// instruction that widens, and __builtin_convertvector to between four and sixty.
template <typename Narrow, typename Wide>
VECTOR_INLINE void widen_bits(const Narrow& narrow, Wide& wide) {
  static_assert(sizeof(Wide) == 2 * sizeof(Narrow) && std::endian::native == std::endian::little);
  constexpr int kElements = sizeof(Narrow) / sizeof(narrow[0]);
  vectors_detail::widen_bits(narrow, wide, std::make_integer_sequence<int, 2 * kElements>());
}

// lanes = the next of source, widened to float32.
template <typename Floats>
VECTOR_INLINE void load(const float* source, Floats& lanes) {
  std::memcpy(&lanes, source, sizeof(lanes));
}
template <typename Floats>
VECTOR_INLINE void load(const BFloat16* source, Floats& lanes) {
  using Vector = VectorOf<kLanesOf<Floats>>;
  typename Vector::HalfBits half_bits;
  std::memcpy(&half_bits, source, sizeof(half_bits));
  typename Vector::Bits bits;
  widen_bits(half_bits, bits);
  lanes = (Floats)(bits << 16);
}
// The arithmetic of to_float(Float16) on several at a time: the conversion instruction cannot be
// named in a function that is also compiled for machines without it.
template <typename Floats>
VECTOR_INLINE void load(const Float16* source, Floats& lanes) {
  using Vector = VectorOf<kLanesOf<Floats>>;
  using Bits = typename Vector::Bits;
  typename Vector::HalfBits half_bits;
  std::memcpy(&half_bits, source, sizeof(half_bits));
  Bits bits;
  widen_bits(half_bits, bits);
  const Bits magnitude = (bits & 0x7fffu) << 13;
  const Bits special = magnitude >= (0x7c00u << 13) ? Bits{} + 0x7f800000u : Bits{};
  const Floats scaled = (Floats)magnitude * 0x1p112f;
  lanes = (Floats)((Bits)scaled | special | ((bits & 0x8000u) << 16));
}

// As above: the arithmetic of to_float(Float8E4M3).
template <typename Floats>
VECTOR_INLINE void load(const Float8E4M3* source, Floats& lanes) {
  using Vector = VectorOf<kLanesOf<Floats>>;
  using Bits = typename Vector::Bits;
  typename Vector::ByteBits byte_bits;
  std::memcpy(&byte_bits, source, sizeof(byte_bits));
  typename Vector::HalfBits half_bits;
  widen_bits(byte_bits, half_bits);
  Bits bits;
  widen_bits(half_bits, bits);
  const Bits magnitude = (bits & 0x7fu) << 20;
  const Bits nan = magnitude == (0x7fu << 20) ? Bits{} + 0x7fc00000u : Bits{};
  const Floats scaled = (Floats)magnitude * 0x1p120f;
  lanes = (Floats)((Bits)scaled | nan | ((bits & 0x80u) << 24));
}

// lanes = source[0 ... count - 1], then zeros; count <= the number of lanes.
template <typename T, typename Floats>
VECTOR_INLINE void load_first(const T* source, int64_t count, Floats& lanes) {
  if (count == kLanesOf<Floats>) return load(source, lanes);
  T padded[kLanesOf<Floats>] = {};
  std::memcpy(padded, source, static_cast<size_t>(count) * sizeof(T));
  load(padded, lanes);
}

template <typename Floats>
VECTOR_INLINE void store(const Floats& lanes, float* destination) {
  std::memcpy(destination, &lanes, sizeof(lanes));
}

template <typename Floats>
VECTOR_INLINE void store_first(const Floats& lanes, int64_t count, float* destination) {
  if (count == kLanesOf<Floats>) return store(lanes, destination);
  std::memcpy(destination, &lanes, static_cast<size_t>(count) * sizeof(float));
}

namespace vectors_detail {

template <typename Floats, typename Half, int... kLane>
VECTOR_INLINE void add_halves(const Floats& lanes, Half& sums,
                              std::integer_sequence<int, kLane...>) {
  sums = __builtin_shufflevector(lanes, lanes, kLane...) +
         __builtin_shufflevector(lanes, lanes, (kLane + kLanesOf<Half>)...);
}

}  // namespace vectors_detail

// Always added in the same order.
template <typename Floats>
VECTOR_INLINE float sum_of(const Floats& lanes) {
  constexpr int kHalf = kLanesOf<Floats> / 2;
  if constexpr (kHalf == 2) {
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
  } else {
    typename VectorOf<kHalf>::Floats sums;
    vectors_detail::add_halves(lanes, sums, std::make_integer_sequence<int, kHalf>());
    return sum_of(sums);
  }
}

// x = exp(x) for x <= 0, to about one unit in the last place; 0 below -87, where float32 would be
// subnormal. exp(x) = 2^n exp(r) with n an integer and |r| <= ln(2) / 2.
template <typename Floats>
VECTOR_INLINE void exp_of_nonpositive(Floats& x) {
  using Bits = typename VectorOf<kLanesOf<Floats>>::Bits;
  constexpr float kLog2E = 1.44269504f;
  constexpr float kLn2High = 0.693359375f;  // few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4f;
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const Floats shifted = x * kLog2E + kRounder;
  const Floats n = shifted - kRounder;
  const Floats r = (x - n * kLn2High) - n * kLn2Low;
  Floats series = 1.0f / 5040.0f * r + 1.0f / 720.0f;
  for (const float coefficient : {1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f}) {
    series = series * r + coefficient;
  }
  const Floats power = (Floats)(((Bits)shifted + 127u) << 23);
  x = x < -87.0f ? Floats{} : series * power;
}

namespace vectors_detail {

// The halves of blocks of kBlock lanes, `half` 0 or 1, of a and of b by turns.
template <int kBlock, int kHalf, typename Floats, int... kLane>
VECTOR_INLINE void take_halves(const Floats& a, const Floats& b, Floats& halves,
                               std::integer_sequence<int, kLane...>) {
  halves =
      __builtin_shufflevector(a, b,
                              (kLane / kBlock * kBlock + kLane % (kBlock / 2) + kHalf * kBlock / 2 +
                               (kLane % kBlock < kBlock / 2 ? 0 : kLanesOf<Floats>))...);
}

}  // namespace vectors_detail

// Lane i * (lanes / kCount) of vectors[0] = the sum of the lanes of vectors[i], for kCount vectors:
// a power of two, at most the number of lanes. A step adds the halves of two vectors' blocks into
// one vector, whose blocks are half as long; a vector that is left alone is folded onto itself.
template <int kBlock, int kCount, typename Floats>
VECTOR_INLINE void sum_each(Floats* vectors) {
  if constexpr (kBlock > 1) {
    constexpr std::make_integer_sequence<int, kLanesOf<Floats>> kEveryLane;
    constexpr int kLeft = kCount > 1 ? kCount / 2 : 1;
    Floats low, high;
    for (int i = 0; i < kLeft; ++i) {
      const Floats& other = vectors[i + kCount / 2];
      vectors_detail::take_halves<kBlock, 0>(vectors[i], other, low, kEveryLane);
      vectors_detail::take_halves<kBlock, 1>(vectors[i], other, high, kEveryLane);
      vectors[i] = low + high;
    }
    sum_each<kBlock / 2, kLeft>(vectors);
  }
}
template <int kCount, typename Floats>
VECTOR_INLINE void sum_each(Floats (&vectors)[kCount]) {
  sum_each<kLanesOf<Floats>, kCount>(&vectors[0]);
}

// x = 2^x for x <= 0, to about one unit in the last place; 0 below -126.5, where float32 would be
// subnormal. 2^x = 2^n 2^r with n an integer and |r| <= 1/2; the polynomial is the one of degree 6
// with the smallest largest error there, 2.6e-9.
template <typename Floats>
VECTOR_INLINE void exp2_of_nonpositive(Floats& x) {
  using Bits = typename VectorOf<kLanesOf<Floats>>::Bits;
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  constexpr float kLowest = -127.0f;     // of which the exponent's bits, and the result, are zeros
  x = kLowest > x ? Floats{} + kLowest : x;
  const Floats shifted = x + kRounder;
  const Floats r = x - (shifted - kRounder);
  Floats series = 1.55946778e-4f * r + 1.34066434e-3f;
  for (const float coefficient :
       {9.61769279e-3f, 5.55031039e-2f, 2.40226522e-1f, 6.93147242e-1f, 1.0f}) {
    series = series * r + coefficient;
  }
  x = series * (Floats)(((Bits)shifted + 127u) << 23);
}

}  // namespace tessera
