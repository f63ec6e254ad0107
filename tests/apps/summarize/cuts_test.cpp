#include "apps/summarize/cuts.h"

#include <gtest/gtest.h>

#include "apps/summarize/chunks.h"

namespace tessera {
namespace {

CutKind kind_behind(const std::string& left, const std::string& right) {
  return cut_kind(left + right, left.size());
}

TEST(Cuts, ParagraphsEndBehindEmptyLines) {
  EXPECT_EQ(kind_behind("One.\n\n", "Two"), CutKind::kParagraph);
  EXPECT_EQ(kind_behind("One\r\n\r\n", "Two"), CutKind::kParagraph);
  EXPECT_EQ(kind_behind("One\n \n", "Two"), CutKind::kParagraph);
  EXPECT_EQ(kind_behind("One.\n", "\nTwo"), CutKind::kSentence);
}

TEST(Cuts, SentencesEndWithMarksAndLines) {
  for (const char* left : {"One.", "One!", "One?\"", "One.)", "One…", "一。", "\"One.\" "}) {
    EXPECT_EQ(kind_behind(left, " Two"), CutKind::kSentence) << left;
  }
  EXPECT_EQ(kind_behind("A line\n", "Another"), CutKind::kSentence);
  EXPECT_EQ(kind_behind("一。", "二"), CutKind::kSentence);
  EXPECT_EQ(kind_behind("3.", "14"), CutKind::kCharacter);
}

TEST(Cuts, WordsAndCharactersAreTheLastResort) {
  EXPECT_EQ(kind_behind("one", " two"), CutKind::kWord);
  EXPECT_EQ(kind_behind("one ", "two"), CutKind::kWord);
  EXPECT_EQ(kind_behind("on", "e"), CutKind::kCharacter);
  EXPECT_EQ(kind_behind("\xC3", "\xA9"), CutKind::kNone);
  EXPECT_EQ(kind_behind("one\r", "\ntwo"), CutKind::kNone);
}

// A token for each byte.
MappedDocument bytes_document(const std::string& text) {
  MappedDocument document = {.name = "", .text = text};
  for (size_t end = 1; end <= text.size(); ++end) {
    document.map.ends.push_back(static_cast<uint32_t>(end));
  }
  return document;
}

TEST(Chunks, EndWithParagraphsWhereThereAreAny) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "A sentence. Another.\nA line.\n\n";
  const MappedDocument document = bytes_document(text);
  const std::vector<Slice> chunks = plan_chunks(document, 7, {.max_tokens = 100});
  EXPECT_GT(chunks.size(), 10U);
  for (const Slice& chunk : chunks) {
    EXPECT_EQ(chunk.document, 7U);
    EXPECT_EQ(text.substr(static_cast<size_t>(chunk.bytes.end) - 2, 2), "\n\n");
  }
}

TEST(Chunks, OverlapBeginsWithASentence) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "This is number " + std::to_string(i) + ". ";
  const MappedDocument document = bytes_document(text);
  const std::vector<Slice> chunks =
      plan_chunks(document, 0, {.max_tokens = 200, .overlap_tokens = 50});
  for (size_t i = 1; i < chunks.size(); ++i) {
    EXPECT_LT(chunks[i].tokens.begin, chunks[i - 1].tokens.end);
    EXPECT_NE(text.find("This", static_cast<size_t>(chunks[i].bytes.begin)), std::string::npos);
    EXPECT_EQ(cut_kind(text, static_cast<size_t>(chunks[i].bytes.begin)), CutKind::kSentence);
  }
}

TEST(Chunks, AreAboutEquallyLong) {
  const MappedDocument document = bytes_document(std::string(1010, 'x'));
  const std::vector<Slice> chunks = plan_chunks(document, 0, {.max_tokens = 500});
  ASSERT_EQ(chunks.size(), 3U);
  for (const Slice& chunk : chunks) EXPECT_GT(chunk.tokens.size(), 250);
}

}  // namespace
}  // namespace tessera
