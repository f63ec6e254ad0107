// The tokens of words that were met before: most words of a text have been.
#pragma once

#include <array>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

// Each word has one place, where the last one that belongs there stays: 2 MB in all.
class WordCache {
 public:
  static constexpr size_t kMaxWordBytes = 32;
  static constexpr size_t kMaxTokens = 7;

  struct Entry {
    std::array<char, kMaxWordBytes> word;
    std::array<TokenId, kMaxTokens> tokens;
    uint8_t word_bytes = 0;  // 0: empty
    uint8_t num_tokens = 0;
  };

  // The place of `word`, of 1 to kMaxWordBytes bytes; whose place it is holds() tells.
  Entry& place_of(std::string_view word) {
    return entries_[std::hash<std::string_view>()(word) & (kNumEntries - 1)];
  }
  static bool holds(const Entry& entry, std::string_view word) {
    return entry.word_bytes == word.size() &&
           std::memcmp(entry.word.data(), word.data(), word.size()) == 0;
  }
  // Keeps the word unless it has too many tokens.
  static void keep(Entry& entry, std::string_view word, std::span<const TokenId> tokens) {
    if (tokens.size() > kMaxTokens) return;
    std::memcpy(entry.word.data(), word.data(), word.size());
    std::memcpy(entry.tokens.data(), tokens.data(), tokens.size_bytes());
    entry.word_bytes = static_cast<uint8_t>(word.size());
    entry.num_tokens = static_cast<uint8_t>(tokens.size());
  }

 private:
  static constexpr size_t kNumEntries = size_t{1} << 15;  // a power of two
  std::vector<Entry> entries_ = std::vector<Entry>(kNumEntries);
};

}  // namespace tessera
