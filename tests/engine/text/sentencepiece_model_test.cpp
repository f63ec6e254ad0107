#include "engine/text/sentencepiece_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/engine/text/sentencepiece_damages.h"
#include "tests/engine/text/tokenizer_fixture.h"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string parse_error(const std::string& bytes) {
  try {
    parse_sentencepiece_model(bytes, "folder/tokenizer.model");
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("folder/tokenizer.model: "));
    return error.what();
  }
  return "";
}

TEST(SentencePieceModel, ReadsWhatDecidesHowTextBecomesTokens) {
  SentencePieceBuilder builder = small_model();
  builder.adds_dummy_prefix = false;
  builder.pieces[290].score = -2.5f;
  const SentencePieceModel model = parse_sentencepiece_model(builder.build(), "");
  EXPECT_EQ(model.pieces.size(), kFirstPiece + kSmallModelPieces.size());
  EXPECT_EQ(model.pieces[0].type, PieceType::kUnknown);
  EXPECT_EQ(model.pieces[4].text, "<|user|>");
  EXPECT_EQ(model.pieces[4].type, PieceType::kUserDefined);
  EXPECT_EQ(model.pieces[kFirstByteToken + 10].text, "<0x0A>");
  EXPECT_EQ(model.pieces[290].score, -2.5f);
  EXPECT_EQ(model.algorithm, SentencePieceAlgorithm::kBpe);
  EXPECT_TRUE(model.has_byte_fallback);
  EXPECT_FALSE(model.adds_dummy_prefix);
  EXPECT_FALSE(model.removes_extra_whitespace);
  EXPECT_EQ(model.bos_piece, "<s>");
}

TEST(SentencePieceModel, AbsentFieldsHaveTheDefaultsOfTheFormat) {
  std::string piece, bytes;
  write_bytes(piece, 1, "a");
  write_bytes(bytes, 1, SentencePieceBuilder::piece_message({"<unk>", 0.0f, 2}));
  write_bytes(bytes, 1, piece);
  write_bytes(bytes, 2, "");
  write_bytes(bytes, 3, "");
  write_varint(bytes, 1000, 7);  // an extension
  const SentencePieceModel model = parse_sentencepiece_model(bytes, "");
  EXPECT_EQ(model.pieces[1].type, PieceType::kNormal);
  EXPECT_EQ(model.pieces[1].score, 0.0f);
  EXPECT_EQ(model.algorithm, SentencePieceAlgorithm::kUnigram);
  EXPECT_FALSE(model.has_byte_fallback);
  EXPECT_TRUE(model.adds_dummy_prefix);
  EXPECT_TRUE(model.removes_extra_whitespace);
}

TEST(SentencePieceModel, WhatIsSerializedSaysTheSame) {
  const SentencePieceModel model = parse_sentencepiece_model(small_model().build(), "");
  const SentencePieceModel copy = parse_sentencepiece_model(serialize(model), "");
  ASSERT_EQ(copy.pieces.size(), model.pieces.size());
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    EXPECT_EQ(copy.pieces[i].type, model.pieces[i].type);
    EXPECT_EQ(copy.pieces[i].score, model.pieces[i].score);
    if (model.pieces[i].type != PieceType::kControl) {
      EXPECT_EQ(copy.pieces[i].text, model.pieces[i].text);
    }
  }
  EXPECT_EQ(copy.algorithm, model.algorithm);
  EXPECT_TRUE(copy.has_byte_fallback);
  EXPECT_FALSE(copy.adds_dummy_prefix);
}

TEST(SentencePieceModel, ReadsTheByteOfABytePiece) {
  EXPECT_EQ(byte_of_piece("<0x00>"), '\0');
  EXPECT_EQ(byte_of_piece("<0xAf>"), std::nullopt);
  EXPECT_EQ(byte_of_piece("<0xFF>"), '\xFF');
  EXPECT_EQ(byte_of_piece("<0x0>"), std::nullopt);
  EXPECT_EQ(byte_of_piece("0x0A"), std::nullopt);
}

class DamagedModel : public testing::TestWithParam<Damage> {};

TEST_P(DamagedModel, IsRefusedWithTheReason) {
  SentencePieceBuilder builder = small_model();
  GetParam().apply(builder);
  EXPECT_THAT(parse_error(builder.build()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(, DamagedModel, testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

TEST(SentencePieceModel, RefusesWhatIsNoModel) {
  constexpr const char* kNotValid = "not a valid SentencePiece model";
  EXPECT_THAT(parse_error(""), HasSubstr(kNotValid));
  EXPECT_THAT(parse_error("{\"version\": \"1.0\"}"), HasSubstr(kNotValid));
  EXPECT_THAT(parse_error("IQ== 0\nIg== 1\n"), HasSubstr(kNotValid));
  EXPECT_THAT(parse_error(std::string(100, '\xFF')), HasSubstr(kNotValid));
  EXPECT_THAT(parse_error("version https://git-lfs.github.com/spec/v1\n"), HasSubstr("Git LFS"));
  std::string wrong_wire_type;
  write_varint(wrong_wire_type, 1, 5);
  EXPECT_THAT(parse_error(wrong_wire_type), HasSubstr("field 1 has wire type 0 instead of 2"));
}

TEST(SentencePieceModel, NoTruncationIsAModel) {
  const std::string bytes = small_model().build();
  const size_t end_of_normalizer = bytes.size() - 4;  // an empty denormalizer_spec follows
  for (size_t size = 0; size < end_of_normalizer; ++size) {
    EXPECT_THAT(parse_error(bytes.substr(0, size)), HasSubstr("not a valid SentencePiece model"));
  }
}

// What the fence lets through must not crash the library.
TEST(SentencePieceModel, MutatedModelsLoadOrThrow) {
  const std::string bytes = small_model().build();
  std::mt19937 random(7);
  int num_loaded = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string mutated = bytes;
    for (uint32_t i = 0; i <= random() % 3; ++i) {
      mutated[random() % mutated.size()] = static_cast<char>(random());
    }
    try {
      const auto tokenizer = load_tokenizer(mutated);
      tokenizer->decode(tokenizer->encode("hello world \n\xC3\xA9 </s><|user|>"));
      ++num_loaded;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(num_loaded, 100);
}

TEST(SentencePieceModel, RandomBytesThrow) {
  std::mt19937 random(8);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_THROW(parse_sentencepiece_model(bytes, ""), Error);
  }
}

}  // namespace
}  // namespace tessera
