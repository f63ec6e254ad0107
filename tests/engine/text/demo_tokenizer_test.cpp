// The demo model's two tokenizers: what SentencePiece trained, and the tokenizer.json made of it.
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "engine/text/utf8.h"
#include "tests/engine/text/json_tokenizer_fixture.h"
#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {
namespace {

constexpr int64_t kVocabularySize = 4096;

std::string weights_file(const std::string& name) {
  return read_whole_file((source_folder() / "weights" / name).string(), uint64_t{1} << 20);
}

class DemoTokenizer : public testing::Test {
 protected:
  void expect_same(const std::string& text) const {
    const std::vector<TokenId> tokens = trained_->encode(text);
    ASSERT_EQ(published_->encode(text), tokens) << text;
    ASSERT_EQ(published_->decode(tokens), trained_->decode(tokens)) << text;
  }

  const std::unique_ptr<Tokenizer> trained_ =
      load_tokenizer(weights_file("demo_tokenizer.model"), {}, kVocabularySize);
  const std::unique_ptr<Tokenizer> published_ =
      load_tokenizer_json(weights_file("demo/tokenizer.json"), {}, kVocabularySize);
};

TEST_F(DemoTokenizer, HasTheSamePieces) {
  ASSERT_EQ(published_->size(), trained_->size());
  for (TokenId id = 0; id < trained_->size(); ++id) {
    EXPECT_EQ(published_->piece(id), trained_->piece(id));
    EXPECT_EQ(published_->is_special(id), trained_->is_special(id)) << trained_->piece(id);
  }
  EXPECT_EQ(published_->special_token("<|end|>"), trained_->special_token("<|end|>"));
}

TEST_F(DemoTokenizer, GivesTheSameTokensOfAnswers) {
  std::ifstream file(source_folder() / "tests" / "golden" / "demo_answers.tsv");
  for (std::string line; std::getline(file, line);) expect_same(line);
}

// Texts of pieces meet every merge, and those of few letters the orders that merges may have.
TEST_F(DemoTokenizer, GivesTheSameTokensOfMixedPieces) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string pieces;
    std::string letters;
    for (int j = 0; j < 20; ++j) {
      const auto id = static_cast<TokenId>(random() % kVocabularySize);
      pieces += trained_->token_bytes(id, /*is_first=*/false);
      letters += "aetns  "[random() % 7];
    }
    if (!find_invalid_utf8(pieces)) expect_same(pieces);
    expect_same(letters);
  }
  expect_same("");
  expect_same(" \n\t  é 世界 👋 <s><|end|></s> 12345");
}

}  // namespace
}  // namespace tessera
