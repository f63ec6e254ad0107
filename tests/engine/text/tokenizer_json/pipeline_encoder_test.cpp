// What becomes of user text, with the ids that the tokenizers library gives.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/text/json_tokenizer_fixture.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::ElementsAre;

json file_of(const json& vocabulary) {
  return {{"added_tokens", json::array()},
          {"decoder", {{"type", "Fuse"}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

std::vector<TokenId> tokens_of(const json& file, std::string_view text) {
  return load_tokenizer_json(file.dump())->encode(text);
}

// As GPT-NeoX has them. What is not white space may be a mark such as "<think>".
TEST(PipelineEncoder, FindsRunsOfWhiteSpaceBesideTheVocabulary) {
  json file = file_of({{"a", 0}, {"b", 1}, {" ", 2}});
  for (const char* const content : {"   ", "  ", "\u3000", "<think>"}) {
    file["added_tokens"].push_back({{"id", 3 + file["added_tokens"].size()},
                                    {"content", content},
                                    {"normalized", true},
                                    {"special", false}});
  }
  EXPECT_THAT(tokens_of(file, "a     b a\u3000<think>"), ElementsAre(0, 3, 4, 1, 2, 0, 5));
  EXPECT_EQ(load_tokenizer_json(file.dump())->decode({0, 3, 4, 1}), "a     b");
  file["added_tokens"][1]["special"] = true;
  EXPECT_THAT(tokens_of(file, "a  b"), ElementsAre(0, 2, 2, 1));
}

TEST(PipelineEncoder, UnknownCharactersComeBehindTheBytesOfOthers) {
  json file = file_of({{"?", 0}, {"a", 1}, {"<0xC3>", 2}, {"<0xA9>", 3}});
  file["model"].update({{"byte_fallback", true}, {"unk_token", "?"}});
  EXPECT_THAT(tokens_of(file, "中éa"), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(tokens_of(file, "a中é中a"), ElementsAre(1, 2, 3, 0, 0, 1));
  EXPECT_THAT(tokens_of(file, "中中é"), ElementsAre(0, 2, 3, 0));
  EXPECT_THAT(tokens_of(file, "中aé"), ElementsAre(0, 1, 2, 3));
  file["model"]["fuse_unk"] = true;
  EXPECT_THAT(tokens_of(file, "a中é中a"), ElementsAre(1, 2, 3, 0, 1));
}

// They become the bytes of the characters that stand for them.
TEST(PipelineEncoder, BytesWithoutATokenFallBackToo) {
  json file = file_of({{"a", 0}, {"<0xC4>", 1}, {"<0xA0>", 2}, {"?", 3}});
  file["pre_tokenizer"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  file["model"].update({{"byte_fallback", true}, {"unk_token", "?"}, {"fuse_unk", true}});
  EXPECT_THAT(tokens_of(file, "a a\n\na"), ElementsAre(0, 1, 2, 0, 3, 0));
  EXPECT_THAT(tokens_of(file, "a\n "), ElementsAre(0, 1, 2, 3));
  file["model"].update({{"byte_fallback", false}, {"unk_token", "a"}});
  EXPECT_THAT(tokens_of(file, "a\n\na"), ElementsAre(0, 0, 0)) << "only unknown ones are one token";
}

// "_" stands in front of what begins where the text did.
TEST(PipelineEncoder, PutsNoPrefixWhereTheBeginningWasRemoved) {
  json file = file_of({{"a", 0}, {"_", 1}});
  file["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  file["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", false}};
  EXPECT_THAT(tokens_of(file, "a"), ElementsAre(1, 0));
  EXPECT_THAT(tokens_of(file, " a"), ElementsAre(0));
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " +"}}}, {"content", ""}};
  EXPECT_THAT(tokens_of(file, "a  a"), ElementsAre(1, 0, 0));
  EXPECT_THAT(tokens_of(file, "  a"), ElementsAre(0));
  file["normalizer"]["content"] = "a";
  EXPECT_THAT(tokens_of(file, " a"), ElementsAre(1, 0, 0));
  EXPECT_THAT(tokens_of(file, "  a"), ElementsAre(0, 0)) << "it stands for the second space";
}

TEST(PipelineEncoder, AnAtomicGroupGivesNothingBack) {
  json file = file_of({{"0", 0}, {"2", 1}, {"4", 2}, {"02", 3}, {"024", 4}});
  file["model"]["merges"] = {"0 2", "02 4"};
  file["pre_tokenizer"] = {
      {"type", "Split"}, {"pattern", {{"Regex", "(?>\\d+|\\d){2}"}}}, {"behavior", "Isolated"}};
  EXPECT_THAT(tokens_of(file, "024"), ElementsAre(4));
}

// What was put in front stands for the first character, as that does itself.
TEST(PipelineEncoder, SeveralWordsMayBeginWhereTheTextDid) {
  json file = file_of({{"a", 0}, {"_", 1}, {"b", 2}});
  file["normalizer"] = {{"type", "Prepend"}, {"prepend", "b"}};
  const json split = {{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "Isolated"}};
  const json metaspace = {{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "first"}};
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, metaspace}}};
  EXPECT_THAT(tokens_of(file, "aba"), ElementsAre(1, 2, 1, 0, 2, 0));
}

TEST(PipelineEncoder, AnEmptyStringIsBetweenAllCharacters) {
  json file = file_of({{"a", 0}, {"_", 1}, {"aa", 2}});
  file["model"]["merges"] = {"a a"};
  const json pattern = {{"String", ""}};
  file["pre_tokenizer"] = {{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}};
  EXPECT_THAT(tokens_of(file, "aa"), ElementsAre(0, 0));
  file["pre_tokenizer"] = nullptr;
  file["normalizer"] = {{"type", "Replace"}, {"pattern", pattern}, {"content", "_"}};
  EXPECT_THAT(tokens_of(file, "aa"), ElementsAre(1, 0, 1, 0, 1));
  const json strip = {{"type", "Strip"}};
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", {strip, file["normalizer"]}}};
  EXPECT_THAT(tokens_of(file, " "), testing::IsEmpty()) << "nothing is in what is empty";
}

TEST(PipelineEncoder, PunctuationIsWhatTheLibraryCallsSo) {
  json file = file_of({{"a", 0},
                       {"!", 1},
                       {"\u2e3d", 2},
                       {"\u2e43", 3},
                       {"\u166d", 4},
                       {"a!", 5},
                       {"a\u2e3d", 6},
                       {"a\u2e43", 7},
                       {"a\u166d", 8}});
  for (const char* const character : {"!", "\u2e3d", "\u2e43", "\u166d"}) {
    file["model"]["merges"].push_back({"a", character});
  }
  file["pre_tokenizer"] = {{"type", "Punctuation"}, {"behavior", "Isolated"}};
  EXPECT_THAT(tokens_of(file, "a!"), ElementsAre(0, 1));
  EXPECT_THAT(tokens_of(file, "a\u2e3d"), ElementsAre(0, 2));
  EXPECT_THAT(tokens_of(file, "a\u2e43"), ElementsAre(7)) << "came with Unicode 9";
  EXPECT_THAT(tokens_of(file, "a\u166d"), ElementsAre(0, 4)) << "until Unicode 12";
}

TEST(PipelineEncoder, DigitsAreWhatTheLibraryCallsSo) {
  json file = file_of({{"a", 0}, {"7", 1}, {"\U0001e4f0", 2}, {"a7", 3}, {"a\U0001e4f0", 4}});
  for (const char* const character : {"7", "\U0001e4f0"}) {
    file["model"]["merges"].push_back({"a", character});
  }
  file["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_THAT(tokens_of(file, "a7"), ElementsAre(0, 1));
  EXPECT_THAT(tokens_of(file, "a\U0001e4f0"), ElementsAre(0, 2)) << "came with Unicode 15";
}

TEST(PipelineEncoder, ReportsWithinALongWord) {
  const auto tokenizer = load_tokenizer_json(file_of({{"a", 0}}).dump());
  int num_reports = 0;
  tokenizer->encode(std::string(1 << 17, 'a'), /*at_start=*/true,
                    [&](uint64_t done, uint64_t) { num_reports += done == 0; });
  EXPECT_GT(num_reports, 10) << "also where nothing merges";
}

}  // namespace
}  // namespace tessera
