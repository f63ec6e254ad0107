#include "engine/model/kv_cache.h"

#include <algorithm>
#include <limits>

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
                 Operations& operations)
    : page_size_(page_size) {
  CHECK(checked_multiply(num_pages, page_size, "KV slots") <= std::numeric_limits<int32_t>::max(),
        "a KV cache of ", num_pages, " pages of ", page_size, " tokens has more slots than int32");
  Arena measure;
  lay_out(measure, config, num_pages, page_size, operations.activation_dtype());
  buffer_ = operations.device().allocate(measure.used_bytes(), "the KV cache");
  Arena arena(buffer_);
  layers_ = lay_out(arena, config, num_pages, page_size, operations.activation_dtype());
  for (int64_t page = num_pages - 1; page >= 0; --page) {
    free_pages_.push_back(static_cast<int32_t>(page));
  }
}

size_t KvCache::bytes_per_token(const ModelConfig& config, DType dtype) {
  const auto values = static_cast<size_t>(config.num_kv_heads * config.head_dim);
  return static_cast<size_t>(config.num_layers) * 2 * values * size_of(dtype);
}

int64_t KvCache::pages_missing(const BlockTable& table, int64_t num_tokens) const {
  return std::max<int64_t>(
      0, ceil_divide(num_tokens, page_size_) - static_cast<int64_t>(table.size()));
}

void KvCache::grow(BlockTable& table, int64_t num_tokens) {
  const int64_t missing = pages_missing(table, num_tokens);
  CHECK(missing <= num_free_pages(), "the KV cache has ", num_free_pages(), " free pages, ",
        missing, " are needed");
  for (int64_t i = 0; i < missing; ++i) {
    table.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

void KvCache::shrink(BlockTable& table, int64_t num_tokens) {
  const auto keep = static_cast<size_t>(ceil_divide(num_tokens, page_size_));
  while (table.size() > keep) {
    free_pages_.push_back(table.back());
    table.pop_back();
  }
}

int32_t KvCache::slot(const BlockTable& table, int64_t position) const {
  const int32_t page = table.at(static_cast<size_t>(position / page_size_));
  return static_cast<int32_t>(page * page_size_ + position % page_size_);
}

}  // namespace tessera
