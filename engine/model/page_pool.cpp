#include "engine/model/page_pool.h"

#include <algorithm>

#include "kernels/tensor/checked_math.h"

namespace tessera {

PagePool::PagePool(int64_t num_pages, int64_t page_size)
    : page_size_(page_size), pages_(static_cast<size_t>(num_pages)) {
  for (Page& page : pages_) {
    page.place = free_.insert(free_.end(), static_cast<int32_t>(&page - pages_.data()));
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
    const int32_t page = free_.front();
    lose(page);
    take(table, page);
  }
}

// Last page first: of kept pages, those behind others are taken before them.
void PagePool::shrink(BlockTable& table, int64_t num_tokens) {
  const auto keep = static_cast<size_t>(ceil_divide(num_tokens, page_size_));
  while (table.size() > keep) {
    give_back(table.back());
    table.pop_back();
  }
}

void PagePool::share(BlockTable& table, int32_t page) {
  CHECK(pages_[static_cast<size_t>(page)].is_kept, "page ", page, " is not kept");
  take(table, page);
}

void PagePool::take(BlockTable& table, int32_t number) {
  table.push_back(number);  // which may run out of memory: nothing is taken then
  Page& page = pages_[static_cast<size_t>(number)];
  if (page.num_holders++ == 0) held_.splice(held_.end(), free_, page.place);
}

void PagePool::give_back(int32_t number) {
  Page& page = pages_[static_cast<size_t>(number)];
  if (--page.num_holders > 0) return;
  free_.splice(page.is_kept ? free_.end() : free_.begin(), held_, page.place);
}

void PagePool::lose(int32_t number) {
  Page& page = pages_[static_cast<size_t>(number)];
  if (!page.is_kept) return;
  page.is_kept = false;
  if (page.num_holders == 0) free_.splice(free_.begin(), free_, page.place);
  if (on_lost_) on_lost_(number);
}

bool PagePool::begin_writing(int32_t number) {
  if (num_holders(number) > 1) return false;
  lose(number);
  return true;
}

int64_t PagePool::num_kept_free_pages() const {
  return std::ranges::count_if(
      pages_, [](const Page& page) { return page.is_kept && page.num_holders == 0; });
}

int32_t kv_slot(std::span<const int32_t> block_table, int64_t position, int64_t page_size) {
  const auto index = static_cast<size_t>(position / page_size);
  CHECK(index < block_table.size(), "token ", position, " has no KV page");
  return static_cast<int32_t>(block_table[index] * page_size + position % page_size);
}

}  // namespace tessera
