#include "engine/serving/ngram_index.h"

#include <algorithm>
#include <bit>

namespace tessera {
namespace {

constexpr uint64_t kFewestEntries = 1 << 10;
constexpr uint64_t kMostEntries = 1 << 20;

}  // namespace

NgramIndex::NgramIndex(int64_t num_tokens) {
  const uint64_t num_runs = static_cast<uint64_t>(num_tokens) * (kLongest - kShortest + 1);
  positions_.resize(std::bit_ceil(std::clamp(num_runs, kFewestEntries, kMostEntries)));
}

size_t NgramIndex::entry_of(std::span<const TokenId> text, int64_t length) const {
  uint64_t hash = static_cast<uint64_t>(length);
  for (const TokenId token : text.last(static_cast<size_t>(length))) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 32;
  }
  return hash & (positions_.size() - 1);
}

void NgramIndex::add(std::span<const TokenId> text) {
  const int64_t longest = std::min(kLongest, std::ssize(text));
  for (int64_t length = kShortest; length <= longest; ++length) {
    positions_[entry_of(text, length)] = static_cast<int32_t>(text.size());
  }
}

NgramMatch NgramIndex::find(std::span<const TokenId> text) const {
  for (int64_t length = std::min(kLongest, std::ssize(text) - 1); length >= kShortest; --length) {
    const int64_t position = positions_[entry_of(text, length)];
    if (position < length || position >= std::ssize(text)) continue;
    const auto run =
        text.subspan(static_cast<size_t>(position - length), static_cast<size_t>(length));
    if (std::ranges::equal(run, text.last(run.size()))) {
      return {.position = position, .length = length};
    }
  }
  return {};
}

}  // namespace tessera
