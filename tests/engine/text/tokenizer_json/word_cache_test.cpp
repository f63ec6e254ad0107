#include "engine/text/tokenizer_json/word_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tessera {
namespace {

// All words of up to nine letters a and NUL, which zeros behind a short word could be taken for.
std::vector<std::string> similar_words() {
  std::vector<std::string> words;
  for (size_t length = 1; length <= 9; ++length) {
    for (unsigned bits = 0; bits < 1u << length; ++bits) {
      std::string word(length, '\0');
      for (size_t i = 0; i < length; ++i) word[i] = (bits >> i & 1) != 0 ? 'a' : '\0';
      words.push_back(word);
    }
  }
  return words;
}

TEST(WordCache, AWordIsKeptAndNoOtherIsTakenForIt) {
  const std::vector<std::string> words = similar_words();
  for (const std::string& kept : words) {
    WordCache::Entry entry;
    const WordCache::Key key(kept);
    EXPECT_FALSE(entry.holds(key));
    entry.keep(key, std::vector<TokenId>{7, 8});
    for (const std::string& word : words) {
      EXPECT_EQ(entry.holds(WordCache::Key(word)), word == kept);
    }
    EXPECT_EQ(entry.num_tokens, 2);
    EXPECT_EQ(entry.tokens[1], 8);
  }
}

TEST(WordCache, LongWordsDifferInEveryByte) {
  const std::string word(WordCache::kMaxWordBytes, 'x');
  for (size_t length = 1; length <= word.size(); ++length) {
    const std::string_view prefix = std::string_view(word).substr(0, length);
    for (size_t i = 0; i < length; ++i) {
      std::string other(prefix);
      other[i] = 'y';
      EXPECT_FALSE(WordCache::Key(prefix) == WordCache::Key(other));
      EXPECT_NE(WordCache::Key(prefix).hash(), WordCache::Key(other).hash());
    }
  }
}

TEST(WordCache, WordsOfManyTokensAreNotKept) {
  WordCache::Entry entry;
  const WordCache::Key key("word");
  entry.keep(key, std::vector<TokenId>(WordCache::kMaxTokens + 1));
  EXPECT_FALSE(entry.holds(key));
}

TEST(WordCache, WordsAreSpreadOverItsPlaces) {
  WordCache cache;
  std::vector<const WordCache::Entry*> places;
  for (int i = 0; i < 1000; ++i)
    places.push_back(&cache.place_of(WordCache::Key(std::to_string(i))));
  std::sort(places.begin(), places.end());
  const auto num_places = std::unique(places.begin(), places.end()) - places.begin();
  EXPECT_GT(num_places, 950);
}

}  // namespace
}  // namespace tessera
