// Element types of tensors and the small float formats on the host.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/tensor/check.h"

namespace tessera {

enum class DType : uint8_t { kFloat32, kFloat16, kBFloat16, kInt32, kFloat8E4M3 };

// What keys and values are kept as in the cache: in the type of activations, or in float8_e4m3.
enum class KvDType : uint8_t { kActivation, kFloat8E4M3 };
constexpr DType stored_dtype(KvDType kv_dtype, DType activation) {
  return kv_dtype == KvDType::kFloat8E4M3 ? DType::kFloat8E4M3 : activation;
}

// Bytes of one element.
constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kInt32:
      return 4;
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kFloat8E4M3:
      return 1;
  }
  throw Error("size of an unknown dtype");
}

// "float32", "float16", "bfloat16", "int32", "float8_e4m3": the spelling of config.json and of
// --dtype.
constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kFloat16:
      return "float16";
    case DType::kBFloat16:
      return "bfloat16";
    case DType::kInt32:
      return "int32";
    case DType::kFloat8E4M3:
      return "float8_e4m3";
  }
  return "unknown";
}

// IEEE 754 binary32 without its low 16 bits.
struct BFloat16 {
  uint16_t bits;
};

// IEEE 754 binary16.
struct Float16 {
  uint16_t bits;
};

// OCP 8-bit floating point E4M3: a sign, 4 bits of exponent (bias 7), 3 of mantissa; subnormals
// down to 2^-9. No infinities: the largest number is 448, the code above it is NaN.
struct Float8E4M3 {
  uint8_t bits;
};
inline constexpr float kLargestFloat8E4M3 = 448.0f;

inline float to_float(float value) { return value; }
inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}
inline float to_float(Float16 value) {
  // Shift exponent and mantissa into binary32 position, then rebase the exponent (15 -> 127) with
  // one multiplication, which also normalises subnormals. Infinity and NaN need their exponent set.
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fffu) << 13;
  const bool special = (value.bits & 0x7c00u) == 0x7c00u;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const uint32_t bits = special ? (magnitude | 0x7f800000u) : std::bit_cast<uint32_t>(scaled);
  return std::bit_cast<float>(bits | sign);
}

inline float to_float(Float8E4M3 value) {
  // As above, from bias 7 to 127.
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80u) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(value.bits & 0x7fu) << 20;
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p120f;
  const bool is_nan = (value.bits & 0x7fu) == 0x7fu;
  return std::bit_cast<float>(sign | (is_nan ? 0x7fc00000u : std::bit_cast<uint32_t>(scaled)));
}

// Round to nearest, ties to even; NaN stays NaN.
inline BFloat16 to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}
inline Float16 to_float16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint16_t>(sign | 0x7e00u)};
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};  // >= 65520
  if (magnitude < 0x38800000u) {
    // Subnormal result: adding 0.5 aligns the mantissa so that the FPU does the rounding.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u))};
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u;
  return {static_cast<uint16_t>(sign | (rounded >> 13))};
}

// What is larger than the largest number becomes that.
inline Float8E4M3 to_float8_e4m3(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return {static_cast<uint8_t>(sign | 0x7fu)};
  if (magnitude >= 0x43e00000u) return {static_cast<uint8_t>(sign | 0x7eu)};  // >= 448
  if (magnitude < 0x3c800000u) {                                              // < 2^-6
    // Subnormal result: beside 2^14, float32 has the steps of 2^-9 that e4m3 has here.
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return {static_cast<uint8_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x46800000u))};
  }
  const uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u) - 0x3c000000u;
  return {static_cast<uint8_t>(sign | (rounded >> 20))};
}

// The DType of a C++ element type.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::kFloat32;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::kFloat16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::kBFloat16;
};
template <>
struct DTypeOf<Float8E4M3> {
  static constexpr DType value = DType::kFloat8E4M3;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::kInt32;
};

}  // namespace tessera
