#include "engine/model/kv_cache.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "engine/model/host_tensor.h"
#include "kernels/device.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

int64_t num_calibration_pages(int64_t num_pages, int64_t page_size) {
  return std::min(num_pages, ceil_divide(kCalibrationTokens, page_size));
}

}  // namespace

std::vector<KvPages> KvCache::lay_out(Arena& arena, const Sizes& sizes) {
  const Shape shape{sizes.num_pages, sizes.num_kv_heads, sizes.page_size, sizes.head_dim};
  std::vector<KvPages> layers;
  for (int64_t i = 0; i < sizes.num_layers; ++i) {
    const Tensor keys = arena.take("key pages", sizes.dtype, shape);
    const Tensor values = arena.take("value pages", sizes.dtype, shape);
    layers.push_back({keys, values});
  }
  return layers;
}

KvCache::KvCache(const ModelConfig& config, int64_t num_pages, int64_t page_size, KvDType kv_dtype,
                 Operations& operations) {
  CHECK(checked_multiply(num_pages, page_size, "KV slots") <= std::numeric_limits<int32_t>::max(),
        "a KV cache of ", num_pages, " pages of ", page_size, " tokens has more slots than int32");
  const DType activation = operations.activation_dtype();
  const Sizes sizes{config.num_layers, num_pages,       config.num_kv_heads,
                    page_size,         config.head_dim, stored_dtype(kv_dtype, activation)};
  calibration_ = sizes;
  calibration_.num_pages = num_calibration_pages(num_pages, page_size);
  calibration_.dtype = activation;
  Arena measure, measure_calibration;
  lay_out(measure, sizes);
  // Needs more where the cache holds few pages.
  if (kv_dtype == KvDType::kFloat8E4M3) lay_out(measure_calibration, calibration_);
  const size_t bytes = std::max(measure.used_bytes(), measure_calibration.used_bytes());
  buffer_ = operations.device().allocate(bytes, "the KV cache");
  Arena arena(buffer_);
  layers_ = lay_out(arena, sizes);
  if (kv_dtype == KvDType::kFloat8E4M3) take_scales(operations.device());
}

void KvCache::take_scales(Device& device) {
  const int64_t num_kv_heads = calibration_.num_kv_heads;
  const Shape shape{calibration_.num_layers, 2, num_kv_heads};
  const std::vector<float> ones(static_cast<size_t>(shape.num_elements()), 1.0f);
  scales_buffer_ = device.allocate(ones.size() * sizeof(float), "the KV cache's scales");
  scales_ = {scales_buffer_.data(), DType::kFloat32, device.id(), shape};
  set_scales(host_tensor(ones, shape), device);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const Tensor of_layer = scales_.slice(layer, layer + 1).reshape({2, num_kv_heads});
    layers_[i].key_scales = of_layer.slice(0, 1).reshape({num_kv_heads});
    layers_[i].value_scales = of_layer.slice(1, 2).reshape({num_kv_heads});
  }
}

void KvCache::set_scales(const Tensor& scales, Device& device) {
  host_scales_.assign(scales.as<float>(), scales.as<float>() + scales.num_elements());
  device.upload(scales_, scales);
  device.synchronize();  // before kernels read them early
}

std::vector<KvPages> KvCache::calibration_pages() const {
  Arena arena(buffer_);
  return lay_out(arena, calibration_);
}

size_t KvCache::calibration_bytes(const ModelConfig& config, int64_t num_pages, int64_t page_size,
                                  DType activation) {
  const int64_t pages = num_calibration_pages(num_pages, page_size);
  return static_cast<size_t>(pages * page_size) * bytes_per_token(config, activation);
}

KvLayout KvCache::layout() const {
  const KvPages& pages = layers_.front();
  return {.dtype = pages.keys.dtype,
          .num_layers = std::ssize(layers_),
          .num_kv_heads = pages.num_kv_heads(),
          .page_size = pages.page_size(),
          .head_dim = pages.head_dim()};
}

size_t KvCache::bytes_per_token(const ModelConfig& config, DType dtype) {
  const auto values = static_cast<size_t>(config.num_kv_heads * config.head_dim);
  return static_cast<size_t>(config.num_layers) * 2 * values * size_of(dtype);
}

}  // namespace tessera
