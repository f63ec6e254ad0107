#include <gtest/gtest.h>

#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {
namespace {

class TextStreamTest : public testing::Test {
 protected:
  std::string append_byte(unsigned char byte) { return stream.append(kFirstByteToken + byte); }

  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(small_model().build(), small_config());
  TextStream stream{*tokenizer};
};

TEST_F(TextStreamTest, GivesWholeCharacters) {
  EXPECT_EQ(stream.append(piece_token("a")), "a");
  EXPECT_EQ(append_byte(0xF0), "");
  EXPECT_EQ(append_byte(0x9F), "");
  EXPECT_EQ(append_byte(0x98), "");
  EXPECT_EQ(append_byte(0x80), "😀");
  EXPECT_EQ(stream.append(piece_token("▁a")), " a");
  EXPECT_EQ(stream.finish(), "");
}

TEST_F(TextStreamTest, LeavesOutTheSpaceInFrontOfTheFirstText) {
  EXPECT_EQ(stream.append(1), "");
  EXPECT_EQ(stream.append(piece_token("▁")), "");
  EXPECT_EQ(stream.append(piece_token("▁hello")), " hello");
}

TEST_F(TextStreamTest, ABytePieceIsNotASpaceInFront) {
  EXPECT_EQ(append_byte(' '), " ");
  EXPECT_EQ(stream.append(piece_token("▁hello")), " hello");
}

TEST_F(TextStreamTest, ReplacesACharacterThatIsNeverFinished) {
  EXPECT_EQ(append_byte(0xE2), "");
  EXPECT_EQ(append_byte(0x96), "");
  EXPECT_EQ(stream.append(piece_token("a")), "\uFFFDa");
  EXPECT_EQ(append_byte(0xFF), "\uFFFD");
  EXPECT_EQ(append_byte(0xC3), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "");
}

TEST_F(TextStreamTest, GivesTheSameAsDecodingAtOnce) {
  const std::string text = " hello  wörld 你好\r\n😀";
  std::vector<TokenId> tokens = tokenizer->encode(text);
  tokens.insert(tokens.begin() + 5, 6);  // <|end|>
  tokens.push_back(kFirstByteToken + 0xE2);
  std::string streamed;
  for (const TokenId token : tokens) streamed += stream.append(token);
  streamed += stream.finish();
  EXPECT_EQ(streamed, text + "\uFFFD");
  EXPECT_EQ(tokenizer->decode(tokens), streamed);
}

}  // namespace
}  // namespace tessera
