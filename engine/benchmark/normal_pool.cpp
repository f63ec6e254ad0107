#include "engine/benchmark/normal_pool.h"

#include <algorithm>
#include <random>

namespace tessera {
namespace {

// Uploads chunks of `source` to `tensor`, the first one from element `first` of it, the next ones
// from its beginning.
void fill_from(Device& device, const Tensor& tensor, const Tensor& source, int64_t first) {
  const int64_t size = tensor.num_elements();
  const Tensor flat = tensor.reshape({size});
  for (int64_t done = 0; done < size;) {
    const int64_t count = std::min(source.dim(0) - first, size - done);
    device.upload(flat.slice(done, done + count), source.slice(first, first + count));
    done += count;
    first = 0;
  }
}

}  // namespace

NormalPool::NormalPool(DType dtype, uint64_t seed) : dtype_(dtype) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  values_.reserve(kPeriod + kMaxRowSize);
  for (int64_t i = 0; i < kPeriod; ++i) {
    const float value = normal(generator);
    if (dtype == DType::kFloat32) {
      values_.push_back(value);
    } else if (dtype == DType::kBFloat16) {
      halves_.push_back(to_bfloat16(value).bits);
      values_.push_back(to_float(BFloat16{halves_.back()}));
    } else {
      halves_.push_back(to_float16(value).bits);
      values_.push_back(to_float(Float16{halves_.back()}));
    }
  }
  for (int64_t i = 0; i < kMaxRowSize; ++i) values_.push_back(values_[static_cast<size_t>(i)]);
}

void NormalPool::fill(Device& device, const Tensor& tensor, int64_t offset) const {
  const void* const elements = halves_.empty() ? static_cast<const void*>(values_.data())
                                               : static_cast<const void*>(halves_.data());
  const Tensor source{const_cast<void*>(elements), dtype_, DeviceType::kCpu, {kPeriod}};
  fill_from(device, tensor, source, offset % kPeriod);
}

void fill_with_nan(Device& device, const Tensor& tensor) {
  constexpr int64_t kChunkElements = int64_t{1} << 21;
  const int64_t count = std::min(kChunkElements, tensor.num_elements());
  std::vector<std::byte> ones(static_cast<size_t>(count) * size_of(tensor.dtype), std::byte{0xff});
  fill_from(device, tensor, {ones.data(), tensor.dtype, DeviceType::kCpu, {count}}, 0);
}

}  // namespace tessera
