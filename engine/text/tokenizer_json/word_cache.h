// The tokens of words that were met before: most words of a text have been.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
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

  // A word of 1 to kMaxWordBytes bytes as numbers, which are compared and hashed at once.
  struct Key {
    explicit Key(std::string_view word);
    bool operator==(const Key&) const = default;
    uint64_t hash() const;

    std::array<uint64_t, kMaxWordBytes / 8> parts = {};  // eight bytes each, zeros after the last
    uint32_t num_bytes = 0;
  };

  // A place. Its word is not the one looked for unless holds() says so.
  struct alignas(64) Entry {
    std::array<uint64_t, kMaxWordBytes / 8> parts = {};
    std::array<TokenId, kMaxTokens> tokens = {};
    uint8_t num_bytes = 0;  // 0: empty
    uint8_t num_tokens = 0;

    bool holds(const Key& key) const { return num_bytes == key.num_bytes && parts == key.parts; }
    // Keeps the word unless it has too many tokens.
    void keep(const Key& key, std::span<const TokenId> word_tokens);
  };

  Entry& place_of(const Key& key) { return entries_[key.hash() >> (64 - kLogEntries)]; }

 private:
  static constexpr int kLogEntries = 15;
  std::vector<Entry> entries_ = std::vector<Entry>(size_t{1} << kLogEntries);
};

// Up to 8 bytes as a number. Fewer are read in two halves that may overlap: with their count, they
// say what the bytes are.
inline uint64_t load_bytes(const char* bytes, size_t count) {
  const auto load = [bytes]<typename Word>(size_t offset, Word word) -> uint64_t {
    std::memcpy(&word, bytes + offset, sizeof(word));
    return word;
  };
  if (count >= 8) return load(0, uint64_t{});
  if (count >= 4) return load(0, uint32_t{}) | load(count - 4, uint32_t{}) << 32;
  if (count >= 2) return load(0, uint16_t{}) | load(count - 2, uint16_t{}) << 16;
  return load(0, uint8_t{});
}

inline WordCache::Key::Key(std::string_view word) : num_bytes(static_cast<uint32_t>(word.size())) {
  for (size_t i = 0; i * 8 < word.size(); ++i) {
    parts[i] = load_bytes(word.data() + i * 8, word.size() - i * 8);
  }
}

inline uint64_t WordCache::Key::hash() const {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  uint64_t hash = num_bytes;
  for (size_t i = 0; i * 8 < num_bytes; ++i) {
    hash = (hash ^ parts[i]) * kGoldenRatio;
    hash ^= hash >> 29;  // what is in high bits counts for low ones too
  }
  return hash * kGoldenRatio;
}

inline void WordCache::Entry::keep(const Key& key, std::span<const TokenId> word_tokens) {
  if (word_tokens.size() > kMaxTokens) return;
  parts = key.parts;
  std::memcpy(tokens.data(), word_tokens.data(), word_tokens.size_bytes());
  num_bytes = static_cast<uint8_t>(key.num_bytes);
  num_tokens = static_cast<uint8_t>(word_tokens.size());
}

}  // namespace tessera
