#include "engine/text/utf8.h"

#include <gtest/gtest.h>

#include <random>

namespace tessera {
namespace {

TEST(Utf8, AcceptsEveryKindOfCharacter) {
  for (const std::string_view text :
       {"", "plain", "\r\n\t", "é", "▁", "\u0301e", "😀", "\xEF\xBF\xBD", "\xED\x9F\xBF",
        "\xEE\x80\x80", "\xF4\x8F\xBF\xBF", "\xC2\x80", "\xE0\xA0\x80", "\xF0\x90\x80\x80"}) {
    EXPECT_EQ(find_invalid_utf8(text), std::nullopt) << text;
    EXPECT_EQ(replace_invalid_utf8(text), text);
    EXPECT_EQ(complete_utf8_prefix(text), text.size()) << text;
  }
  EXPECT_EQ(find_invalid_utf8(std::string_view("a\0b", 3)), std::nullopt);
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  const struct {
    std::string_view text;
    size_t offset;
    std::string_view replaced;
  } cases[] = {
      {"ab\x80", 2, "ab\uFFFD"},                            // continuation without a lead
      {"é\xFFz", 2, "é\uFFFDz"},                            // never occurs
      {"\xC0\xAF", 0, "\uFFFD\uFFFD"},                      // overlong "/"
      {"\xE0\x80\xAF", 0, "\uFFFD\uFFFD\uFFFD"},            // overlong
      {"\xF0\x8F\xBF\xBF", 0, "\uFFFD\uFFFD\uFFFD\uFFFD"},  // overlong
      {"\xED\xA0\x80", 0, "\uFFFD\uFFFD\uFFFD"},            // surrogate
      {"\xF4\x90\x80\x80", 0, "\uFFFD\uFFFD\uFFFD\uFFFD"},  // above U+10FFFF
      {"\xF5", 0, "\uFFFD"},
      {"a\xE2\x82", 1, "a\uFFFD"},             // cut short
      {"a\xF0\x9F\x98!", 1, "a\uFFFD!"},       // interrupted
      {"\xE2\x82\xE2\x82\xAC", 0, "\uFFFD€"},  // interrupted by a good one
  };
  for (const auto& [text, offset, replaced] : cases) {
    EXPECT_EQ(find_invalid_utf8(text), offset) << replaced;
    EXPECT_EQ(replace_invalid_utf8(text), replaced);
  }
}

// Long work can be ended: whoever asks is called every few milliseconds of it, if at all.
TEST(Utf8, PausesInLongTexts) {
  std::string text;
  for (int i = 0; i < 3 << 18; ++i) text += "e\u0301";
  int num_pauses = 0;
  EXPECT_EQ(find_invalid_utf8(text, [&] { ++num_pauses; }), std::nullopt);
  EXPECT_EQ(num_pauses, 3);
  num_pauses = 0;
  EXPECT_EQ(replace_invalid_utf8(text, [&] { ++num_pauses; }), text);
  EXPECT_EQ(num_pauses, 6) << "ASCII counts too";
  EXPECT_THROW(find_invalid_utf8(text, [] { throw 1; }), int);
}

TEST(Utf8, HoldsBackOnlyUnfinishedCharacters) {
  EXPECT_EQ(complete_utf8_prefix("a\xF0\x9F\x98"), 1u);
  EXPECT_EQ(complete_utf8_prefix("a\xF0\x9F"), 1u);
  EXPECT_EQ(complete_utf8_prefix("a\xF0"), 1u);
  EXPECT_EQ(complete_utf8_prefix("a\xE2\x96"), 1u);
  EXPECT_EQ(complete_utf8_prefix("\xC3"), 0u);
  EXPECT_EQ(complete_utf8_prefix("a\x80"), 2u);      // certainly invalid
  EXPECT_EQ(complete_utf8_prefix("a\xED\xA0"), 3u);  // a surrogate, whatever follows
  EXPECT_EQ(complete_utf8_prefix("\x80\x80\x80\x80"), 4u);
}

TEST(Utf8, ReplacingPieceByPieceGivesTheSameAsAtOnce) {
  constexpr std::string_view kBytes = "a\x80\xBF\xC3\xE2\x96\x81\xED\xA0\xF0\x9F\x98\xFF";
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text, streamed, pending;
    for (int i = 0; i < 12; ++i) text += kBytes[random() % kBytes.size()];
    for (const char byte : text) {
      pending += byte;
      const size_t complete = complete_utf8_prefix(pending);
      streamed += replace_invalid_utf8(pending.substr(0, complete));
      pending.erase(0, complete);
      ASSERT_LE(pending.size(), 3u);
    }
    EXPECT_EQ(streamed + replace_invalid_utf8(pending), replace_invalid_utf8(text));
    EXPECT_EQ(find_invalid_utf8(replace_invalid_utf8(text)), std::nullopt);
  }
}

}  // namespace
}  // namespace tessera
