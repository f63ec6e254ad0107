#include "engine/text/thinking_splitter.h"

#include <gtest/gtest.h>

#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {
namespace {

// "thinking|answer" of `text` streamed in pieces of `piece_size` bytes.
std::string streamed(std::string_view text, size_t piece_size, bool is_thinking = false) {
  ThinkingSplitter splitter({.is_thinking = is_thinking});
  ThoughtAndAnswer all;
  const auto add = [&all](const ThoughtAndAnswer& more) {
    all.thinking += more.thinking;
    all.answer += more.answer;
  };
  for (size_t i = 0; i < text.size(); i += piece_size) {
    add(splitter.append(text.substr(i, piece_size)));
  }
  add(splitter.finish());
  return all.thinking + '|' + all.answer;
}

void expect_parts(std::string_view text, const std::string& parts, bool is_thinking = false) {
  for (size_t piece_size = 1; piece_size <= text.size() + 1; ++piece_size) {
    EXPECT_EQ(streamed(text, piece_size, is_thinking), parts) << text << " by " << piece_size;
  }
}

TEST(ThinkingSplitter, DividesAtMarksAtAnySplit) {
  expect_parts("<think>\none  two\n\n</think>\n\nYes.\n", "one  two|Yes.\n");
  expect_parts(" \n<think>a</think>b", "a|b");
  expect_parts("<think>\n\n</think>\n\nb", "|b");
  expect_parts("<think></think>b", "|b");
}

TEST(ThinkingSplitter, WithoutAnEndAllIsThinking) {
  expect_parts("<think>a < b </thin", "a < b </thin|");
  expect_parts("<think>a \n", "a|");
  expect_parts("<think>", "|");
}

TEST(ThinkingSplitter, BeginsInsideWhereThePromptDoes) {
  expect_parts("\na</think>\n\nb", "a|b", /*is_thinking=*/true);
  expect_parts("a", "a|", /*is_thinking=*/true);
}

TEST(ThinkingSplitter, OnlyTheStartCounts) {
  expect_parts("", "|");
  expect_parts(" \n", "| \n");
  expect_parts(" <thin air>", "| <thin air>");
  expect_parts("a <think>b</think>", "|a <think>b</think>");
  expect_parts("b</think>c", "|b</think>c");
  expect_parts("<think>a</think>b<think>c</think>", "a|b<think>c</think>");
  expect_parts("<think>a<think>b</think>c", "a<think>b|c");
}

TEST(ThinkingSplitter, HoldsBackNoMoreThanNeeded) {
  ThinkingSplitter splitter;
  EXPECT_EQ(splitter.append("<think>one ").thinking, "one");
  EXPECT_EQ(splitter.append("two</").thinking, " two");
  EXPECT_EQ(splitter.append("b>").thinking, "</b>");
  EXPECT_EQ(splitter.append("</think> x").answer, "x");
  EXPECT_EQ(splitter.append(" y ").answer, " y ");
  ThinkingSplitter plain;
  EXPECT_EQ(plain.append("<").answer, "");
  EXPECT_EQ(plain.append("b").answer, "<b");
}

TEST(ThinkingSplitter, WholeTextsAreDividedAlike) {
  const ThoughtAndAnswer parts = split_thinking("a\n</think>b", {.is_thinking = true});
  EXPECT_EQ(parts.thinking, "a");
  EXPECT_EQ(parts.answer, "b");
}

TEST(ThinkingSplitter, SomeModelsHaveMarksOfTheirOwn) {
  for (const ThinkingMarks& marks : kThinkingMarks) {
    const std::string text = concat(" ", marks.begin, "a\n", marks.end, "b");
    const ThoughtAndAnswer parts = split_thinking(text, {.marks = marks});
    EXPECT_EQ(parts.thinking + '|' + parts.answer, "a|b") << marks.begin;
    SentencePieceBuilder builder = small_model();
    builder.add(std::string(marks.begin), PieceType::kControl);
    const auto tokenizer = load_tokenizer(builder.build(), small_config());
    std::vector<TokenId> prompt = tokenizer->encode("hello");
    EXPECT_EQ(thinking_start(*tokenizer, prompt).marks.end, marks.end);
    EXPECT_FALSE(thinking_start(*tokenizer, prompt).is_thinking);
    prompt.push_back(tokenizer->special_token(marks.begin).value());
    EXPECT_TRUE(thinking_start(*tokenizer, prompt).is_thinking);
  }
  const ThoughtAndAnswer other = split_thinking("[THINK]a[/THINK]b", {});
  EXPECT_EQ(other.answer, "[THINK]a[/THINK]b") << "text of a model with other marks";
}

TEST(ThinkingSplitter, APromptMayEndInTheMark) {
  SentencePieceBuilder builder = small_model();
  builder.add("<think>", PieceType::kControl);
  for (const bool is_token : {true, false}) {
    const auto tokenizer =
        load_tokenizer((is_token ? builder : small_model()).build(), small_config());
    const auto tokens = [&](std::string_view before, std::string_view behind) {
      std::vector<TokenId> prompt = tokenizer->encode(before);
      if (is_token) prompt.push_back(tokenizer->special_token("<think>").value());
      const auto tail =
          tokenizer->encode(is_token ? std::string(behind) : "<think>" + std::string(behind),
                            /*at_start=*/false);
      prompt.insert(prompt.end(), tail.begin(), tail.end());
      return prompt;
    };
    EXPECT_TRUE(thinking_start(*tokenizer, tokens("hello", "")).is_thinking);
    EXPECT_TRUE(thinking_start(*tokenizer, tokens("hello", "\n")).is_thinking);
    EXPECT_FALSE(thinking_start(*tokenizer, tokens("hello", "\n\n</think>\n\n")).is_thinking);
    EXPECT_FALSE(thinking_start(*tokenizer, tokenizer->encode("think>")).is_thinking);
  }
}

}  // namespace
}  // namespace tessera
