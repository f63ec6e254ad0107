// Which pages of the KV cache are free. Pages are numbers here; their memory is in KvCache.
//
// A page holds page_size consecutive tokens of one sequence (Kwon et al. 2023, PagedAttention), so
// sequences grow without moving and memory is lost only in each one's last page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tessera {

// Page numbers of one sequence, in the order of its tokens.
using BlockTable = std::vector<int32_t>;

class PagePool {
 public:
  // Pages 0 to num_pages - 1 of page_size tokens, all of them free.
  PagePool(int64_t num_pages, int64_t page_size);

  int64_t num_pages() const { return num_pages_; }
  int64_t num_free_pages() const { return static_cast<int64_t>(free_pages_.size()); }

  // Pages `table` lacks to hold num_tokens.
  int64_t pages_missing(const BlockTable& table, int64_t num_tokens) const;

  // Takes pages until `table` holds num_tokens. Throws when fewer than pages_missing() are free.
  void grow(BlockTable& table, int64_t num_tokens);

  // Gives back the pages beyond those that num_tokens need; 0 gives back all.
  void shrink(BlockTable& table, int64_t num_tokens);

 private:
  int64_t num_pages_;
  int64_t page_size_;
  std::vector<int32_t> free_pages_;  // a stack
};

// Where token `position` of a sequence lies: page * page_size + row. Throws Error when the table
// ends before it.
int32_t kv_slot(std::span<const int32_t> block_table, int64_t position, int64_t page_size);

}  // namespace tessera
