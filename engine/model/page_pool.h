// Who holds which page of the KV cache. Pages are numbers here; their memory is in KvCache.
//
// A page holds page_size consecutive tokens of a sequence (Kwon et al. 2023, PagedAttention), so
// sequences grow without moving and memory is lost only in each one's last page. Sequences that
// begin with the same tokens may hold the same pages: these are read by all and written by none.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <span>
#include <vector>

namespace tessera {

// Page numbers of one sequence, in the order of its tokens.
using BlockTable = std::vector<int32_t>;

class PagePool {
 public:
  // Pages 0 to num_pages - 1 of page_size tokens, all of them free.
  PagePool(int64_t num_pages, int64_t page_size);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  int64_t num_pages() const { return static_cast<int64_t>(pages_.size()); }
  int64_t page_size() const { return page_size_; }
  // Pages that no table holds, kept ones among them.
  int64_t num_free_pages() const { return static_cast<int64_t>(free_.size()); }

  // Pages `table` lacks to hold num_tokens.
  int64_t pages_missing(const BlockTable& table, int64_t num_tokens) const;

  // Takes pages until `table` holds num_tokens: those that are not kept, then the kept ones that
  // nobody has held for longest. Throws when fewer than pages_missing() are free.
  void grow(BlockTable& table, int64_t num_tokens);

  // Gives back the pages beyond those that num_tokens need; 0 gives back all.
  void shrink(BlockTable& table, int64_t num_tokens);

  // Appends `page`, a kept page, to the table.
  void share(BlockTable& table, int32_t page);

  // A kept page's contents are of use even while nobody holds it, until it is lost: taken for other
  // contents, or written to.
  void keep(int32_t page) { pages_[static_cast<size_t>(page)].is_kept = true; }
  void lose(int32_t page);
  int64_t num_kept_free_pages() const;
  // `on_lost` is called for every page that is lost.
  void set_on_lost(std::function<void(int32_t page)> on_lost) { on_lost_ = std::move(on_lost); }

  // Whether a sequence whose table holds the page may write to it: not while other tables hold it
  // too. If it may, the page is lost.
  bool begin_writing(int32_t page);

  // Tables that hold the page.
  int64_t num_holders(int32_t page) const { return pages_[static_cast<size_t>(page)].num_holders; }

 private:
  struct Page {
    int64_t num_holders = 0;
    bool is_kept = false;
    std::list<int32_t>::iterator place;  // in free_ or held_
  };

  void take(BlockTable& table, int32_t page);
  void give_back(int32_t page);

  int64_t page_size_;
  std::vector<Page> pages_;
  std::list<int32_t> free_;  // in the order in which they are taken
  std::list<int32_t> held_;
  std::function<void(int32_t page)> on_lost_;
};

// Where token `position` of a sequence lies: page * page_size + row. Throws Error when the table
// ends before it.
int32_t kv_slot(std::span<const int32_t> block_table, int64_t position, int64_t page_size);

}  // namespace tessera
