// Run-time values become template parameters here and nowhere else. Each function calls `body` with
// one of the values it lists and throws, naming them, for any other.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <utility>

#include "kernels/cuda/device/head_dims.h"
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

// body<kHeadDim>() with one of kHeadDims.
template <typename Body>
void dispatch_head_dim(int64_t head_dim, Body&& body) {
  const auto call_if = [&]<int kHeadDim>() {
    if (head_dim == kHeadDim) body.template operator()<kHeadDim>();
    return head_dim == kHeadDim;
  };
  const bool is_known = [&]<size_t... kIndices>(std::index_sequence<kIndices...>) {
    return (call_if.template operator()<kHeadDims[kIndices]>() || ...);
  }
  (std::make_index_sequence<kHeadDims.size()>());
  CHECK(is_known, "there are no CUDA kernels for head_dim ", head_dim);
}

// body<kWidth>(): elements a thread moves at a time, 8 when rows of `row_elements` allow it.
template <typename Body>
void dispatch_vector_width(int64_t row_elements, Body&& body) {
  if (row_elements % 8 == 0) return body.template operator()<8>();
  body.template operator()<1>();
}

}  // namespace tessera
