#include "engine/serving/ngram_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/engine/serving/characters.h"

namespace tessera {
namespace {

// As whoever follows a text: looks for its end, then adds it.
NgramMatch last_match(std::span<const TokenId> text, int64_t expected_tokens = 1000) {
  NgramIndex index(expected_tokens);
  NgramMatch match;
  for (size_t size = 1; size <= text.size(); ++size) {
    match = index.find(text.first(size));
    index.add(text.first(size));
  }
  return match;
}

NgramMatch last_match(std::string_view text) { return last_match(characters_of(text)); }

TEST(NgramIndexTest, FindsTheLongestRunAndOfThoseTheNewest) {
  EXPECT_EQ(last_match("abcd").length, 0);
  EXPECT_EQ(last_match("a").length, 0);
  EXPECT_EQ(last_match("xa.ya.za").length, 0) << "one token alone is no match";
  EXPECT_EQ(last_match("ab1.ab2.ab").position, 6);
  EXPECT_EQ(last_match("cab1.ab2.cab").position, 3) << "longer, though older";
  EXPECT_EQ(last_match("cab1.ab2.cab").length, 3);
  EXPECT_EQ(last_match("0123456789.123456").length, 5) << "longer ones are not told apart";
  EXPECT_EQ(last_match("aaa").position, 2) << "runs may overlap";
}

TEST(NgramIndexTest, WhatItFindsIsThereAlsoInATableTooSmall) {
  for (const int64_t expected_tokens : {1, 5000}) {
    std::mt19937 random(1);
    std::vector<TokenId> text;
    for (int i = 0; i < 5000; ++i) text.push_back(static_cast<TokenId>(random() % 50));
    NgramIndex index(expected_tokens);
    int num_found = 0, num_there = 0;
    for (size_t size = 1; size <= text.size(); ++size) {
      const auto known = std::span<const TokenId>(text).first(size);
      const NgramMatch match = index.find(known);
      index.add(known);
      const auto end = known.last(std::min<size_t>(size, 2));
      num_there += !std::ranges::search(known.first(size - 1), end).empty() && size > 2;
      if (match.length == 0) continue;
      ++num_found;
      const auto length = static_cast<size_t>(match.length);
      const auto position = static_cast<size_t>(match.position);
      ASSERT_LT(position, size);
      EXPECT_TRUE(std::ranges::equal(known.subspan(position - length, length), known.last(length)));
    }
    EXPECT_LE(num_found, num_there);
    EXPECT_GT(num_found, expected_tokens == 1 ? 100 : num_there * 8 / 10);
  }
}

}  // namespace
}  // namespace tessera
