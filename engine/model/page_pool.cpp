#include "engine/model/page_pool.h"

#include <algorithm>

#include "kernels/tensor/checked_math.h"

namespace tessera {

PagePool::PagePool(int64_t num_pages, int64_t page_size)
    : num_pages_(num_pages), page_size_(page_size) {
  for (int64_t page = num_pages - 1; page >= 0; --page) {
    free_pages_.push_back(static_cast<int32_t>(page));
  }
}

int64_t PagePool::pages_missing(const BlockTable& table, int64_t num_tokens) const {
  return std::max<int64_t>(
      0, ceil_divide(num_tokens, page_size_) - static_cast<int64_t>(table.size()));
}

void PagePool::grow(BlockTable& table, int64_t num_tokens) {
  const int64_t missing = pages_missing(table, num_tokens);
  CHECK(missing <= num_free_pages(), "the KV cache has ", num_free_pages(), " free pages, ",
        missing, " are needed");
  for (int64_t i = 0; i < missing; ++i) {
    table.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

void PagePool::shrink(BlockTable& table, int64_t num_tokens) {
  const auto keep = static_cast<size_t>(ceil_divide(num_tokens, page_size_));
  while (table.size() > keep) {
    free_pages_.push_back(table.back());
    table.pop_back();
  }
}

int32_t kv_slot(std::span<const int32_t> block_table, int64_t position, int64_t page_size) {
  const auto index = static_cast<size_t>(position / page_size);
  CHECK(index < block_table.size(), "token ", position, " has no KV page");
  return static_cast<int32_t>(block_table[index] * page_size + position % page_size);
}

}  // namespace tessera
