#include "engine/text/tokenizer_json/piece_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <utility>

namespace tessera {
namespace {

using Prefixes = std::vector<std::pair<size_t, TokenId>>;  // bytes, id

Prefixes prefixes_of(std::string_view text, const PieceTrie& trie) {
  Prefixes found;
  trie.for_each_prefix(text, [&](size_t bytes, TokenId id) { found.emplace_back(bytes, id); });
  return found;
}

PieceTrie trie_of(const std::map<std::string, TokenId>& ids) {
  std::vector<PieceTrie::Piece> pieces;
  for (const auto& [text, id] : ids) pieces.push_back({text, id});
  return PieceTrie(pieces);
}

Prefixes expected_prefixes(std::string_view text, const std::map<std::string, TokenId>& ids) {
  Prefixes expected;
  for (size_t bytes = 1; bytes <= text.size(); ++bytes) {
    const auto piece = ids.find(std::string(text.substr(0, bytes)));
    if (piece != ids.end()) expected.emplace_back(bytes, piece->second);
  }
  return expected;
}

TEST(PieceTrieTest, WithoutPiecesNothingIsFound) {
  EXPECT_EQ(prefixes_of(std::string("\0a\xff", 3), PieceTrie()), Prefixes());
}

TEST(PieceTrieTest, TheShortestComesFirst) {
  const PieceTrie trie = trie_of({{"abc", 0}, {"a", 7}, {"ac", 3}, {"abcde", 5}});
  EXPECT_EQ(prefixes_of("abcd", trie), (Prefixes{{1, 7}, {3, 0}}));
  EXPECT_EQ(prefixes_of("bcd", trie), Prefixes());
  EXPECT_EQ(prefixes_of("", trie), Prefixes());
}

// Of few bytes that lie close together, and of all there are, so that nodes have one child or many.
TEST(PieceTrieTest, FindsWhatAMapFinds) {
  std::mt19937_64 random(1);
  for (const uint64_t num_letters : {2, 5, 256}) {
    const auto draw = [&](uint64_t longest) {
      std::string text(1 + random() % longest, '\0');
      for (char& byte : text) byte = static_cast<char>(random() % num_letters + 300 - num_letters);
      return text;
    };
    std::map<std::string, TokenId> ids;
    for (TokenId id = 0; id < 20'000; ++id) ids.emplace(draw(9), id);
    const PieceTrie trie = trie_of(ids);
    size_t num_found = 0;
    for (int i = 0; i < 20'000; ++i) {
      const std::string text = draw(12);
      const Prefixes found = prefixes_of(text, trie);
      EXPECT_EQ(found, expected_prefixes(text, ids));
      num_found += found.size();
    }
    EXPECT_GT(num_found, 20'000) << num_letters << " letters";
  }
}

}  // namespace
}  // namespace tessera
