// Element types on the device: conversion to and from float, and vectors of them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace tessera {

__device__ inline float as_float(float value) { return value; }
__device__ inline float as_float(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float as_float(__half value) { return __half2float(value); }

// Round to nearest, ties to even.
template <typename Element>
__device__ Element from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half_rn(value);
}

// kWidth elements that the compiler moves with loads and stores of up to 16 bytes.
template <typename Element, int kWidth>
struct alignas(sizeof(Element) * kWidth) Vector {
  Element values[kWidth];
};

// Vector `index` of an array that is aligned to the vector's size.
template <int kWidth, typename Element>
__device__ Vector<Element, kWidth> load_vector(const Element* array, int64_t index) {
  return reinterpret_cast<const Vector<Element, kWidth>*>(array)[index];
}
template <int kWidth, typename Element>
__device__ void store_vector(Element* array, int64_t index, const Vector<Element, kWidth>& vector) {
  reinterpret_cast<Vector<Element, kWidth>*>(array)[index] = vector;
}

}  // namespace tessera
