#include "engine/model/kv_cache.h"

#include <iterator>
#include <limits>

#include "kernels/device.h"

namespace tessera {
namespace {

std::vector<KvPages> lay_out(Arena& arena, const ModelConfig& config, int64_t num_pages,
                             int64_t page_size, DType dtype) {
  const Shape shape{num_pages, config.num_kv_heads, page_size, config.head_dim};
  std::vector<KvPages> layers;
  for (int64_t i = 0; i < config.num_layers; ++i) {
    const Tensor keys = arena.take("key pages", dtype, shape);
    const Tensor values = arena.take("value pages", dtype, shape);
    layers.push_back({keys, values});
  }
  return layers;
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, int64_t num_pages, int64_t page_size,
                 Operations& operations) {
  CHECK(checked_multiply(num_pages, page_size, "KV slots") <= std::numeric_limits<int32_t>::max(),
        "a KV cache of ", num_pages, " pages of ", page_size, " tokens has more slots than int32");
  Arena measure;
  lay_out(measure, config, num_pages, page_size, operations.activation_dtype());
  buffer_ = operations.device().allocate(measure.used_bytes(), "the KV cache");
  Arena arena(buffer_);
  layers_ = lay_out(arena, config, num_pages, page_size, operations.activation_dtype());
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
