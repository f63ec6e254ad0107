// From a DType to the C++ type of its elements, and between the float types.
#pragma once

#include <type_traits>

#include "kernels/tensor/check.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

// body<T>() with T = float, Float16 or BFloat16.
template <typename Body>
void with_float_type(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kFloat32:
      return body.template operator()<float>();
    case DType::kFloat16:
      return body.template operator()<Float16>();
    case DType::kBFloat16:
      return body.template operator()<BFloat16>();
    default:
      throw Error(concat(to_string(dtype), " is not a floating-point type"));
  }
}

// `value` rounded to T.
template <typename T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(value);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(value);
  } else {
    return value;
  }
}

}  // namespace tessera
