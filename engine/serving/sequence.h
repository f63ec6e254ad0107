// The tokens of one conversation or document, and the KV pages that hold the first of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/text/token_id.h"

namespace tessera {

class Sequence {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Sequence(PagePool& pool) : pool_(pool) {}
  ~Sequence() { release_cache(); }
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Makes `prompt`, which is not empty, the sequence's tokens. The cached tokens that it begins
  // with stay cached, except its last token, whose logits are needed.
  void start(std::span<const TokenId> prompt);

  void append(TokenId token) { tokens_.push_back(token); }

  // Records that num_tokens more tokens are cached.
  void advance(int64_t num_tokens);

  const std::vector<TokenId>& tokens() const { return tokens_; }  // prompt and answer
  int64_t num_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t num_cached() const { return num_cached_; }  // leading tokens whose KV is in the pages
  int64_t num_uncached() const { return num_tokens() - num_cached_; }
  BlockTable& block_table() { return block_table_; }
  const BlockTable& block_table() const { return block_table_; }
  Clock::time_point last_used() const { return last_used_; }

  // Gives back the pages that were taken for tokens that did not come.
  void release_unused_pages() { pool_.shrink(block_table_, num_cached_); }

  // Gives all pages back. The next prompt is computed from its start.
  void release_cache();

 private:
  PagePool& pool_;
  std::vector<TokenId> tokens_;
  int64_t num_cached_ = 0;
  BlockTable block_table_;
  Clock::time_point last_used_;
};

}  // namespace tessera
