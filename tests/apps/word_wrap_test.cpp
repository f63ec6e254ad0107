#include "apps/terminal/word_wrap.h"

#include <gtest/gtest.h>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

// Fed a character at a time, as a model may write it.
std::string wrapped(std::string_view text, size_t width) {
  WordWrap wrap;
  std::string written;
  for (size_t at = 0; at < text.size(); at += utf8_character_bytes(text[at])) {
    written += wrap.feed(text.substr(at, utf8_character_bytes(text[at])), width);
  }
  return written + wrap.finish(width);
}

TEST(WordWrap, BreaksBetweenWords) {
  EXPECT_EQ(wrapped("one two three four", 9), "one two\nthree\nfour");
  EXPECT_EQ(wrapped("12345 789", 9), "12345 789");
  EXPECT_EQ(wrapped("12345 7890", 9), "12345\n7890");
}

TEST(WordWrap, KeepsNewlinesAndIndentation) {
  EXPECT_EQ(wrapped("a\n\n  b c\n", 9), "a\n\n  b c\n");
  EXPECT_EQ(wrapped("a\tb", 20), "a       b");
}

TEST(WordWrap, SpacesAtTheEdgeDoNotWrap) {
  EXPECT_EQ(wrapped("12345    \nnext", 5), "12345\nnext");
}

TEST(WordWrap, OnlyTheWordInProgressIsHeldBack) {
  WordWrap wrap;
  EXPECT_EQ(wrap.feed("one tw", 20), "one");
  EXPECT_EQ(wrap.feed("o", 20), "");
  EXPECT_EQ(wrap.feed(" three", 20), " two");
  EXPECT_EQ(wrap.finish(20), " three");
}

TEST(WordWrap, AWordLongerThanALineIsLeftToTheTerminal) {
  WordWrap wrap;
  EXPECT_EQ(wrap.feed("a 123456789", 5), "a\n12345");
  EXPECT_EQ(wrap.feed("0123 x", 5), "67890123");
  EXPECT_EQ(wrap.feed("y", 5), "");
  EXPECT_EQ(wrap.finish(5), "\nxy");
}

TEST(WordWrap, CodeStaysAsItIs) {
  const std::string code = "```c\nint main(void) { return 0; }\n\tx\n```\n";
  EXPECT_EQ(wrapped(code, 10), code);
  EXPECT_EQ(wrapped(code + "after the code", 10), code + "after the\ncode");
  EXPECT_EQ(wrapped("say ``` and go on", 10), "say ```\nand go on");
}

TEST(WordWrap, WideCharactersTakeTwoColumns) {
  EXPECT_EQ(wrapped("日本語です。", 6), "日本語\nです。");
  EXPECT_EQ(wrapped("日本語。", 6), "日本\n語。") << "a full stop does not begin a line";
  EXPECT_EQ(wrapped("ab 日本", 6), "ab 日\n本");
}

TEST(WordWrap, CombinedEmojiStayTogether) {
  const std::string family = "👨‍👩‍👧";
  EXPECT_EQ(wrapped("abc " + family, 8), "abc\n" + family);
}

TEST(WordWrap, FollowsTheWidth) {
  WordWrap wrap;
  EXPECT_EQ(wrap.feed("one two three ", 40), "one two three");
  EXPECT_EQ(wrap.feed("four ", 10), "\nfour");
}

}  // namespace
}  // namespace tessera
