// A matrix that activations are multiplied with, in the form in which a device keeps it.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/tensor/tensor.h"

namespace tessera {

enum class WeightFormat : uint8_t {
  kDense,  // one element of `data` per weight
};

constexpr std::string_view to_string(WeightFormat format) {
  return format == WeightFormat::kDense ? "dense" : "unknown";
}

struct WeightMatrix {
  WeightMatrix() = default;
  // kDense, [out_features, in_features].
  WeightMatrix(const Tensor& dense)  // NOLINT: a dense matrix is its tensor
      : data(dense), out_features(dense.dim(0)), in_features(dense.dim(1)) {}

  Tensor data;  // kDense: [out_features, in_features]
  Tensor bias;  // float32 [out_features], which every product adds; empty: none
  WeightFormat format = WeightFormat::kDense;
  int64_t out_features = 0;
  int64_t in_features = 0;

  bool empty() const { return data.empty(); }
};

}  // namespace tessera
