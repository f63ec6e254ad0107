// Finds the KV pages of tokens that some sequence has computed before.
//
// Keys and values of a token depend on all tokens before it, so a whole page is known by its own
// tokens and by the page before it. Every page that can be found has a name of its own, which is
// never given again; a page is found by the name of its predecessor and by its tokens, and both are
// compared: no two different prefixes can be taken for each other.
//
// A page can be found as soon as the step that computes it has been launched: steps run in the
// order of their launches. While that step is only being planned, the page is coming.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/serving/page_name.h"
#include "engine/serving/sequence.h"
#include "engine/text/token_id.h"

namespace tessera {

// Pages that hold the first tokens of a prompt.
struct CachedPrefix {
  BlockTable pages;
  std::vector<PageName> names;
  bool is_coming_on = false;  // the page behind them is coming: a step later there are more
};

class PrefixCache {
 public:
  // The pool must outlive the cache, which hears of its lost pages. One that is off finds nothing.
  PrefixCache(PagePool& pool, bool is_on);
  ~PrefixCache();
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;

  bool is_on() const { return is_on_; }

  // The longest prefix that is there. The last of the tokens, whose logits are needed, is never
  // part of it.
  CachedPrefix find(std::span<const TokenId> tokens) const;

  // A step that is being planned computes the sequence's tokens up to num_tokens, which are known:
  // the whole pages among them are coming.
  void add(Sequence& sequence, int64_t num_tokens);
  // The step has been launched: what was coming is there.
  void publish();
  // The step has been given up: what was coming does not come.
  void withdraw();

  // Nothing that the sequence's pages hold can be found any more.
  void forget(const Sequence& sequence);
  // No page can be found any more.
  void clear();

 private:
  static constexpr int32_t kNone = -1;  // no page

  struct Entry {
    PageName name = kNoPage;  // kNoPage: the page cannot be found
    PageName predecessor = kNoPage;
    std::vector<TokenId> tokens;
    bool is_coming = false;
    int32_t before = kNone;        // the page whose name is `predecessor`
    int32_t first_behind = kNone;  // of the pages that have this one before them, which are a list:
    int32_t previous = kNone, next = kNone;
  };
  using Hash = uint64_t;

  static Hash hash_of(PageName predecessor, std::span<const TokenId> tokens);
  // The page of these tokens behind `predecessor`, if there is one.
  int32_t page_of(PageName predecessor, std::span<const TokenId> tokens) const;
  Entry& entry(int32_t page) { return entries_[static_cast<size_t>(page)]; }
  const Entry& entry(int32_t page) const { return entries_[static_cast<size_t>(page)]; }
  // Makes `page` the one of these tokens behind the page `before`, unless there is one already.
  // Which it is.
  int32_t add_page(int32_t page, int32_t before, std::span<const TokenId> tokens);
  // The page cannot be found any more. What is behind it cannot be either, and is lost.
  void erase(int32_t page);
  // The same for a page with nothing behind it.
  void erase_last(int32_t page);

  PagePool& pool_;
  bool is_on_;
  PageName last_name_ = kNoPage;
  std::vector<Entry> entries_;  // by page number
  std::unordered_multimap<Hash, int32_t> by_hash_;
  std::vector<int32_t> coming_;
};

}  // namespace tessera
