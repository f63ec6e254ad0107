// The tokens of one conversation or document, and the KV pages that hold the first of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/serving/page_name.h"
#include "engine/text/token_id.h"

namespace tessera {

class Sequence {
 public:
  explicit Sequence(PagePool& pool) : pool_(pool) {}
  ~Sequence() { release_cache(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Makes `prompt`, which is not empty, the sequence's tokens. The cached tokens that it begins
  // with stay cached, except its last token, whose logits are needed, and those in a page that the
  // prompt would write to while others hold it.
  void start(std::span<const TokenId> prompt);

  // Makes `tokens`, which fill whole pages, the sequence's tokens, and takes free pages for them,
  // which whoever calls fills before advance(). Nothing is cached until then. Throws Error when too
  // few pages are free.
  void reserve(std::span<const TokenId> tokens);

  // Takes pages that hold the first of its tokens, more than it has in its own, instead of these.
  void adopt(std::span<const int32_t> pages, std::span<const PageName> names);

  void append(TokenId token) { tokens_.push_back(token); }

  // A step has been launched that computes its tokens up to `end`, and draws one after them as its
  // `draw_index`-th if it completes them.
  void launch(int64_t end, int64_t draw_index);
  // Records that its tokens up to `end` are cached.
  void advance(int64_t end) { num_cached_ = end; }
  // The drafts that have been launched and not recorded turned out to be wrong: steps compute their
  // positions anew.
  void drop_drafts() { num_launched_ = num_cached_; }
  // What has been launched and not recorded is dropped, and the pages taken for it are given back.
  void drop_launched();

  const std::vector<TokenId>& tokens() const { return tokens_; }  // prompt and answer
  int64_t num_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t num_cached() const { return num_cached_; }      // leading tokens whose KV is in the pages
  int64_t num_launched() const { return num_launched_; }  // these, and those that steps compute
  // Whether a step that has been launched draws the token after those that are known.
  bool awaits_token() const { return num_launched_ >= num_tokens(); }
  // Whether the newest step computes drafts: nobody knows how many tokens will follow.
  bool has_drafts() const { return num_launched_ > num_tokens(); }
  // The index of that token among those that the newest step draws.
  int64_t draw_index() const { return draw_index_; }
  // Tokens that no step computes yet; the one it awaits counts.
  int64_t num_uncomputed() const { return awaits_token() ? 1 : num_tokens() - num_launched_; }

  BlockTable& block_table() { return block_table_; }
  const BlockTable& block_table() const { return block_table_; }
  // The names of its first pages, of those that PrefixCache has named.
  std::vector<PageName>& page_names() { return page_names_; }

  // While it is scheduled, which is while it waits or runs: its place among all that were, the
  // older the lower.
  std::optional<uint64_t> arrival() const { return arrival_; }
  void set_arrival(std::optional<uint64_t> arrival) { arrival_ = arrival; }

  // Whether the sequence runs: steps may be computing it, so its pages stay. It is fresh as long as
  // no step has been launched since it began to run.
  bool is_running() const { return is_running_; }
  bool is_fresh() const { return is_fresh_; }
  void set_running(bool is_running) { is_running_ = is_fresh_ = is_running; }

  // Gives all pages back. What comes next is computed from its start.
  void release_cache();

 private:
  // Holds the pages of num_cached_ tokens, no more.
  void release_unused_pages();

  PagePool& pool_;
  std::vector<TokenId> tokens_;
  int64_t num_cached_ = 0;
  int64_t num_launched_ = 0;
  int64_t draw_index_ = 0;
  std::optional<uint64_t> arrival_;
  bool is_running_ = false;
  bool is_fresh_ = false;
  BlockTable block_table_;
  std::vector<PageName> page_names_;
};

}  // namespace tessera
