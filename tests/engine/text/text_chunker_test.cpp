#include "engine/text/text_chunker.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TextChunker chunker_of(const std::vector<std::string>& pieces) {
  SentencePieceModel model;
  for (const std::string& text : pieces) model.pieces.push_back({text});
  return TextChunker(model);
}

TEST(TextChunker, ShortTextIsOneChunk) {
  EXPECT_EQ(chunker_of({}).first_chunk("ab", 2), "ab");
  EXPECT_EQ(chunker_of({}).first_chunk("", 2), "");
}

TEST(TextChunker, CutsBetweenCharactersThatNoPieceJoins) {
  const TextChunker chunker = chunker_of({"▁ab", "cd", "▁▁"});
  EXPECT_EQ(chunker.first_chunk("ababab", 1), "ab");
  EXPECT_EQ(chunker.first_chunk("ab cd", 1), "ab");
  EXPECT_EQ(chunker.first_chunk("cdcd", 2), "cd");
  EXPECT_EQ(chunker.first_chunk("  ab", 1), "  ab");
  EXPECT_EQ(chunker.first_chunk("  cd", 1), "  ");
}

TEST(TextChunker, AUnicodeSpaceOfThePiecesIsASpace) {
  EXPECT_EQ(chunker_of({"▁▁"}).first_chunk("a ▁ b", 2), "a ▁ ");
}

TEST(TextChunker, NewlinesAreNotSpecial) {
  EXPECT_EQ(chunker_of({"\n\n"}).first_chunk("a\n\nb", 2), "a\n\n");
  EXPECT_EQ(chunker_of({"\n\n", "\nb"}).first_chunk("a\n\nb", 2), "a\n\nb");
}

TEST(TextChunker, NeverCutsACharacter) {
  const TextChunker chunker = chunker_of({});
  for (size_t min_bytes = 1; min_bytes <= 4; ++min_bytes) {
    EXPECT_EQ(chunker.first_chunk("😀😀", min_bytes), "😀");
  }
  EXPECT_EQ(chunker_of({"aé"}).first_chunk(std::string_view("\0é\0é", 6), 2),
            std::string_view("\0é", 3));
}

}  // namespace
}  // namespace tessera
