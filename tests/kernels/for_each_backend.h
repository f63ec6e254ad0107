// Tests that run on every backend: "cpu", "cuda-bf16" and "cuda-fp16". Without a GPU the latter are
// skipped with the reason.
//
//   class SiluMulTest : public BackendTest {};
//   TEST_P(SiluMulTest, ...) { ... backend() ... }
//   FOR_EACH_BACKEND(SiluMulTest);
//   FOR_EACH_VECTOR_LEVEL(SiluMulTest);
//
// The last line, for tests that take little time, adds the CPU with AVX2, "cpu-avx2", and with what
// any x86-64 has, "cpu-plain".
//
// Shapes in these tests stay within what CUDA supports: in_features of linear layers a multiple of
// 8, head_dim one of 32, 64, 80, 96, 128, 256. What only the CPU supports is tested on
// make_cpu_backend.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/backend.h"

namespace tessera {

// A tensor in device memory and its owner.
struct DeviceTensor {
  Buffer buffer;
  Tensor view;

  operator const Tensor&() const { return view; }
  operator WeightMatrix() const { return view; }
};

// The values nearest to these that `dtype` can represent. References are computed from them, so
// that a test measures the operation and not the rounding of its inputs.
std::vector<double> rounded(std::vector<double> values, DType dtype);

// A tensor of `dtype` with these values, rounded; NaN becomes NaN.
DeviceTensor to_device(Backend& backend, const std::vector<double>& values, DType dtype,
                       const Shape& shape);
// An int32 tensor.
DeviceTensor to_device(Backend& backend, const std::vector<int32_t>& values, const Shape& shape);

// A float8_e4m3 tensor.
DeviceTensor fp8_to_device(Backend& backend, const std::vector<Float8E4M3>& values,
                           const Shape& shape);

// A tensor whose every element is NaN, or 0x7fffffff for int32: what an operation does not write
// shows.
DeviceTensor poisoned(Backend& backend, DType dtype, const Shape& shape);

// The elements of a device tensor of any dtype.
std::vector<double> to_host(Backend& backend, const Tensor& tensor);
// Its bytes, to compare bit by bit.
std::vector<uint8_t> bytes_of(Backend& backend, const Tensor& tensor);

class BackendTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Backend& backend() const { return *backend_; }
  Device& device() const { return backend_->device(); }
  Operations& operations() const { return backend_->operations(); }
  FusedOperations& fused() const { return backend_->fused_operations({}); }
  DType activation() const { return operations().activation_dtype(); }

  // The functions above on backend().
  DeviceTensor activations(const std::vector<double>& values, const Shape& shape) const {
    return to_device(backend(), values, activation(), shape);
  }
  DeviceTensor floats(const std::vector<double>& values, const Shape& shape) const {
    return to_device(backend(), values, DType::kFloat32, shape);
  }
  DeviceTensor integers(const std::vector<int32_t>& values, const Shape& shape) const {
    return to_device(backend(), values, shape);
  }
  std::vector<double> host(const Tensor& tensor) const { return to_host(backend(), tensor); }

  // Whether kernels that only Hopper has may run: products of 9 to 64 tokens, which elsewhere are a
  // library's, whose bits may depend on the number of tokens, and the fused decode step.
  bool runs_hopper() const;

  // Weight dtypes that backend() keeps as they are stored.
  std::vector<DType> weight_dtypes() const;

 private:
  Backend* backend_ = nullptr;
};

// The parameters of INSTANTIATE_TEST_SUITE_P.
std::vector<std::string> backend_names();
std::vector<std::string> vector_level_names();
std::string backend_test_name(const testing::TestParamInfo<std::string>& info);

// Where a token's results do not depend on what else is computed: float32 on the CPU, bfloat16.
std::vector<std::string> invariant_backend_names();

// For attention also "cuda-portable", bfloat16 with the kernels of every GPU where others are
// faster, and "cuda-invariant".
std::vector<std::string> attention_backend_names();

#define FOR_EACH_BACKEND(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::tessera::backend_names()), \
                           ::tessera::backend_test_name)
#define FOR_EACH_VECTOR_LEVEL(suite)                                           \
  INSTANTIATE_TEST_SUITE_P(VectorLevels, suite,                                \
                           testing::ValuesIn(::tessera::vector_level_names()), \
                           ::tessera::backend_test_name)
#define FOR_EACH_INVARIANT_BACKEND(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::tessera::invariant_backend_names()), \
                           ::tessera::backend_test_name)
#define FOR_EACH_ATTENTION_BACKEND(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(::tessera::attention_backend_names()), \
                           ::tessera::backend_test_name)

}  // namespace tessera
