#include "engine/text/stop_matcher.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

// Streams `text` in pieces of `piece_size` bytes; returns what was shown.
std::string stream(StopMatcher& matcher, std::string_view text, size_t piece_size) {
  std::string shown;
  for (size_t i = 0; i < text.size(); i += piece_size) {
    shown += matcher.append(text.substr(i, piece_size));
  }
  return shown + matcher.finish();
}

TEST(StopMatcher, EndsBeforeTheFirstStopAtAnySplit) {
  for (size_t piece_size = 1; piece_size <= 20; ++piece_size) {
    StopMatcher matcher({"END", "\n\n"});
    EXPECT_EQ(stream(matcher, "one EN two ENDthree\n\n", piece_size), "one EN two ") << piece_size;
    EXPECT_TRUE(matcher.has_matched());
  }
}

TEST(StopMatcher, ShowsEverythingWithoutAMatch) {
  for (size_t piece_size = 1; piece_size <= 8; ++piece_size) {
    StopMatcher matcher({"END", "abab"});
    EXPECT_EQ(stream(matcher, "aba EN EEN aba", piece_size), "aba EN EEN aba") << piece_size;
    EXPECT_FALSE(matcher.has_matched());
  }
}

TEST(StopMatcher, HoldsBackOnlyWhatCouldBecomeAStop) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.append("abcE"), "abc");
  EXPECT_EQ(matcher.append("N"), "");
  EXPECT_EQ(matcher.append("x"), "ENx");
  EXPECT_EQ(matcher.append("EN"), "");
  EXPECT_EQ(matcher.finish(), "EN");
}

TEST(StopMatcher, OverlappingBeginnings) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.append("aaa"), "a");
  EXPECT_EQ(matcher.append("b"), "");
  EXPECT_TRUE(matcher.has_matched());
}

TEST(StopMatcher, MayBeginWhereItMayNotEnd) {
  StopMatcher matcher({"abc", "x"});
  EXPECT_EQ(matcher.append("abcxab", /*may_end=*/false), "abcx");
  EXPECT_EQ(matcher.append("c"), "");
  EXPECT_TRUE(matcher.has_matched());
}

TEST(StopMatcher, WithoutStopsPassesThrough) {
  StopMatcher matcher;
  EXPECT_EQ(matcher.append("anything"), "anything");
  EXPECT_EQ(matcher.finish(), "");
}

}  // namespace
}  // namespace tessera
