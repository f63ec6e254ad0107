#include "engine/benchmark/normal_pool.h"

#include <algorithm>
#include <cstring>
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

// Writes `value` to `place` as an element of `dtype`. Returns what it was rounded to.
float put_element(float value, DType dtype, std::byte* place) {
  const auto put = [place](auto element) {
    std::memcpy(place, &element, sizeof(element));
    return to_float(element);
  };
  switch (dtype) {
    case DType::kBFloat16:
      return put(to_bfloat16(value));
    case DType::kFloat16:
      return put(to_float16(value));
    case DType::kFloat8E4M3:
      return put(to_float8_e4m3(value));
    default:
      return put(value);
  }
}

}  // namespace

NormalPool::NormalPool(DType dtype, uint64_t seed)
    : dtype_(dtype), elements_(kPeriod * size_of(dtype)) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  values_.reserve(kPeriod + kMaxRowSize);
  for (size_t i = 0; i < kPeriod; ++i) {
    values_.push_back(put_element(normal(generator), dtype, &elements_[i * size_of(dtype)]));
  }
  for (int64_t i = 0; i < kMaxRowSize; ++i) values_.push_back(values_[static_cast<size_t>(i)]);
}

void NormalPool::fill(Device& device, const Tensor& tensor, int64_t offset) const {
  auto* const elements = const_cast<std::byte*>(elements_.data());
  const Tensor source{elements, dtype_, DeviceType::kCpu, {kPeriod}};
  fill_from(device, tensor, source, offset % kPeriod);
}

void fill_with_nan(Device& device, const Tensor& tensor) {
  constexpr int64_t kChunkElements = int64_t{1} << 21;
  const int64_t count = std::min(kChunkElements, tensor.num_elements());
  std::vector<std::byte> ones(static_cast<size_t>(count) * size_of(tensor.dtype), std::byte{0xff});
  fill_from(device, tensor, {ones.data(), tensor.dtype, DeviceType::kCpu, {count}}, 0);
}

}  // namespace tessera
