#include "engine/serving/sequence.h"

#include <algorithm>

namespace tessera {

void Sequence::start(std::span<const TokenId> prompt) {
  const std::span cached(tokens_.data(), static_cast<size_t>(num_cached_));
  const auto common = std::ranges::mismatch(cached, prompt).in1 - cached.begin();
  num_cached_ = std::min<int64_t>(common, static_cast<int64_t>(prompt.size()) - 1);
  const int64_t rows = num_cached_ % pool_.page_size();  // that the prompt keeps of a page
  const auto page = static_cast<size_t>(num_cached_ / pool_.page_size());
  if (rows > 0 && !pool_.begin_writing(block_table_[page])) num_cached_ -= rows;
  release_unused_pages();
  num_launched_ = num_cached_;
  tokens_.assign(prompt.begin(), prompt.end());
}

void Sequence::reserve(std::span<const TokenId> tokens) {
  release_cache();
  tokens_.assign(tokens.begin(), tokens.end());
  pool_.grow(block_table_, num_tokens());
}

void Sequence::adopt(std::span<const int32_t> pages, std::span<const PageName> names) {
  release_cache();
  for (const int32_t page : pages) pool_.share(block_table_, page);
  page_names_.assign(names.begin(), names.end());
  num_cached_ = num_launched_ = static_cast<int64_t>(pages.size()) * pool_.page_size();
}

void Sequence::launch(int64_t end, int64_t draw_index) {
  num_launched_ = end;
  draw_index_ = draw_index;
  is_fresh_ = false;
}

void Sequence::drop_launched() {
  num_launched_ = num_cached_;
  release_unused_pages();
}

void Sequence::release_cache() {
  num_cached_ = num_launched_ = 0;
  release_unused_pages();
}

void Sequence::release_unused_pages() {
  pool_.shrink(block_table_, num_cached_);
  const auto num_whole_pages = static_cast<size_t>(num_cached_ / pool_.page_size());
  page_names_.resize(std::min(page_names_.size(), num_whole_pages));
}

}  // namespace tessera
