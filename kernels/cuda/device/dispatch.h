// Run-time values become template parameters here and nowhere else. Each function calls `body` with
// one of the values it lists and throws, naming them, for any other.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/tensor/check.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

// body<Element>() with a 16-bit type: activations, weights, KV pages. Returns what body returns.
template <typename Body>
auto dispatch_element(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kBFloat16:
      return body.template operator()<__nv_bfloat16>();
    case DType::kFloat16:
      return body.template operator()<__half>();
    default:
      throw Error(concat("CUDA kernels compute in bfloat16 or float16, got ", to_string(dtype)));
  }
}

// body<Float>() with any floating-point type.
template <typename Body>
void dispatch_float(DType dtype, Body&& body) {
  if (dtype == DType::kFloat32) return body.template operator()<float>();
  dispatch_element(dtype, body);
}

// body<kHeadDim>(). Each value costs compile time in two attention kernels and two types.
template <typename Body>
void dispatch_head_dim(int64_t head_dim, Body&& body) {
  switch (head_dim) {
    case 32:
      return body.template operator()<32>();
    case 64:
      return body.template operator()<64>();
    case 80:
      return body.template operator()<80>();
    case 96:
      return body.template operator()<96>();
    case 128:
      return body.template operator()<128>();
    case 256:
      return body.template operator()<256>();
    default:
      throw Error(concat("head_dim ", head_dim,
                         " is not supported on CUDA; supported: 32, 64, 80, 96, 128, 256"));
  }
}

// body<kWidth>(): elements a thread moves at a time, 8 when rows of `row_elements` allow it.
template <typename Body>
void dispatch_vector_width(int64_t row_elements, Body&& body) {
  if (row_elements % 8 == 0) return body.template operator()<8>();
  body.template operator()<1>();
}

}  // namespace tessera
