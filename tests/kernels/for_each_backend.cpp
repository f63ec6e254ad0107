#include "tests/kernels/for_each_backend.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>

#include "kernels/cpu/vector_level.h"
#include "tests/kernels/deadline.h"

#ifdef TESSERA_CUDA
#include "kernels/cuda/device/gpu_traits.h"
#endif

namespace tessera {
namespace {

// Two threads, so that work is divided even on a machine with one core.
constexpr int kCpuThreads = 2;

bool is_cpu(const std::string& name) { return name.starts_with("cpu"); }

KernelChoice kernel_choice(const std::string& name) {
  if (name.ends_with("-invariant")) return KernelChoice::kBatchInvariant;
  return name == "cuda-portable" ? KernelChoice::kPortable : KernelChoice::kFastest;
}

// One backend of each name for the whole run: starting CUDA takes longer than most tests.
class SharedBackends : public testing::Environment {
 public:
  Backend& get(const std::string& name) {
    std::unique_ptr<Backend>& backend = backends_[name];
    if (!backend && is_cpu(name)) backend = make_cpu_backend(kCpuThreads, kernel_choice(name));
    if (!backend && (name == "cuda-bf16" || name == "cuda-portable" || name == "cuda-invariant")) {
      backend = make_cuda_backend(0, DType::kBFloat16, kernel_choice(name));
    }
    if (!backend && name == "cuda-fp16") backend = make_cuda_backend(0, DType::kFloat16);
    CHECK(backend != nullptr, "no backend is called '", name, "'");
    return *backend;
  }
  // Before main returns, while the CUDA runtime still lives.
  void TearDown() override { backends_.clear(); }

 private:
  std::map<std::string, std::unique_ptr<Backend>> backends_;
};

SharedBackends* const shared_backends =
    static_cast<SharedBackends*>(testing::AddGlobalTestEnvironment(new SharedBackends));

template <typename T>
T converted(double value) {
  const auto single = static_cast<float>(value);
  if constexpr (std::is_same_v<T, Float16>) return to_float16(single);
  if constexpr (std::is_same_v<T, BFloat16>) return to_bfloat16(single);
  if constexpr (std::is_same_v<T, float>) return single;
}

// body(T{}) with the element type of a floating-point dtype.
template <typename Body>
auto with_element(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat16:
      return body(Float16{});
    case DType::kBFloat16:
      return body(BFloat16{});
    case DType::kFloat32:
      return body(float{});
    default:
      throw Error(concat(to_string(dtype), " is not a floating-point type"));
  }
}

template <typename T>
DeviceTensor copy_to_device(Backend& backend, std::vector<T>& values, const Shape& shape) {
  CHECK(static_cast<int64_t>(values.size()) == shape.num_elements(), values.size(),
        " values for shape ", shape);
  const DType dtype = DTypeOf<T>::value;
  // Empty tensors get memory as well: a test of an empty batch should reach the operation.
  Buffer buffer =
      backend.device().allocate(std::max<size_t>(values.size() * sizeof(T), 1), "test tensor");
  const Tensor view{buffer.data(), dtype, backend.device().id(), shape};
  backend.device().upload(view, {values.data(), dtype, DeviceType::kCpu, shape});
  return {std::move(buffer), view};
}

}  // namespace

std::vector<double> rounded(std::vector<double> values, DType dtype) {
  with_element(dtype, [&]<typename T>(T) {
    for (double& value : values) value = to_float(converted<T>(value));
  });
  return values;
}

DeviceTensor to_device(Backend& backend, const std::vector<double>& values, DType dtype,
                       const Shape& shape) {
  return with_element(dtype, [&]<typename T>(T) {
    std::vector<T> elements(values.size());
    std::ranges::transform(values, elements.begin(), converted<T>);
    return copy_to_device(backend, elements, shape);
  });
}

DeviceTensor to_device(Backend& backend, const std::vector<int32_t>& values, const Shape& shape) {
  std::vector<int32_t> copy = values;
  return copy_to_device(backend, copy, shape);
}

DeviceTensor fp8_to_device(Backend& backend, const std::vector<Float8E4M3>& values,
                           const Shape& shape) {
  std::vector<Float8E4M3> copy = values;
  return copy_to_device(backend, copy, shape);
}

DeviceTensor poisoned(Backend& backend, DType dtype, const Shape& shape) {
  const auto size = static_cast<size_t>(shape.num_elements());
  if (dtype == DType::kFloat8E4M3) {
    return fp8_to_device(backend, std::vector<Float8E4M3>(size, Float8E4M3{0x7f}), shape);
  }
  if (dtype == DType::kInt32) {
    return to_device(backend, std::vector<int32_t>(size, 0x7fffffff), shape);
  }
  return to_device(backend, std::vector<double>(size, std::numeric_limits<double>::quiet_NaN()),
                   dtype, shape);
}

std::vector<uint8_t> bytes_of(Backend& backend, const Tensor& tensor) {
  std::vector<uint8_t> bytes(tensor.size_bytes());
  const Deadline deadline("a download");
  backend.device().download({bytes.data(), tensor.dtype, DeviceType::kCpu, tensor.shape}, tensor);
  return bytes;
}

std::vector<double> to_host(Backend& backend, const Tensor& tensor) {
  const std::vector<uint8_t> bytes = bytes_of(backend, tensor);
  std::vector<double> values(static_cast<size_t>(tensor.num_elements()));
  const auto convert = [&]<typename T>(T, auto to_value) {
    for (size_t i = 0; i < values.size(); ++i) {
      T element;
      std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = to_value(element);
    }
  };
  if (tensor.dtype == DType::kInt32) {
    convert(int32_t{}, [](int32_t value) { return static_cast<double>(value); });
  } else if (tensor.dtype == DType::kFloat8E4M3) {
    convert(Float8E4M3{}, [](Float8E4M3 value) { return static_cast<double>(to_float(value)); });
  } else {
    with_element(tensor.dtype, [&]<typename T>(T zero) {
      convert(zero, [](T value) { return static_cast<double>(to_float(value)); });
    });
  }
  return values;
}

namespace {

// Of the CPU's backends.
VectorLevel level_of(const std::string& name) {
  if (name == "cpu-plain") return VectorLevel::kPlain;
  if (name == "cpu-avx2") return VectorLevel::kAvx2;
  return best_vector_level();
}

}  // namespace

void BackendTest::SetUp() {
  if (is_cpu(GetParam())) {
    const VectorLevel level = level_of(GetParam());
    if (level > best_vector_level()) GTEST_SKIP() << "this machine has no AVX2";
    set_vector_level(level);
  } else {
    const CudaStatus status = cuda_status();
    if (status.num_devices == 0) GTEST_SKIP() << status.problem;
  }
  backend_ = &shared_backends->get(GetParam());
}

bool BackendTest::runs_hopper() const {
#ifdef TESSERA_CUDA
  if (device().type() == DeviceType::kCuda) {
    return gpu_traits(0, kernel_choice(GetParam())).runs_hopper();
  }
#endif
  return false;
}

void BackendTest::TearDown() { set_vector_level(best_vector_level()); }

std::vector<DType> BackendTest::weight_dtypes() const {
  std::vector<DType> kept;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    if (operations().weight_dtype(dtype) == dtype) kept.push_back(dtype);
  }
  return kept;
}

std::vector<std::string> backend_names() { return {"cpu", "cuda-bf16", "cuda-fp16"}; }

std::vector<std::string> vector_level_names() { return {"cpu-avx2", "cpu-plain"}; }

std::vector<std::string> invariant_backend_names() { return {"cpu-invariant", "cuda-invariant"}; }

std::vector<std::string> attention_backend_names() {
  std::vector<std::string> names = backend_names();
  names.emplace_back("cuda-portable");
  names.emplace_back("cuda-invariant");
  return names;
}

std::string backend_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

}  // namespace tessera
