#include "engine/serving/sequence.h"

#include <algorithm>

namespace tessera {

void Sequence::start(std::span<const TokenId> prompt) {
  const std::span cached(tokens_.data(), static_cast<size_t>(num_cached_));
  const auto common = std::ranges::mismatch(cached, prompt).in1 - cached.begin();
  num_cached_ = std::min<int64_t>(common, static_cast<int64_t>(prompt.size()) - 1);
  release_unused_pages();
  tokens_.assign(prompt.begin(), prompt.end());
  last_used_ = Clock::now();
}

void Sequence::advance(int64_t num_tokens) {
  num_cached_ += num_tokens;
  last_used_ = Clock::now();
}

void Sequence::release_cache() {
  num_cached_ = 0;
  pool_.shrink(block_table_, 0);
}

}  // namespace tessera
