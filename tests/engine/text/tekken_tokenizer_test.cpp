// tekken.json: ids as mistral-common gives them, and what files must not say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/engine/error_of.h"
#include "tests/engine/text/tokenizer_file.h"

namespace tessera {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

std::string base64(const std::string& bytes) {
  constexpr std::string_view kCharacters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) {
      bits = bits << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (size_t j = 0; j < 4; ++j)
      text += j <= count ? kCharacters[bits >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

// All bytes, a few longer tokens and one that vocab_size leaves out, behind 20 special tokens.
json small_file() {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  for (const char* const token : {"aa", "aaa", " b", "ab", "abab", "é", "xyz", "yz", "unused"}) {
    tokens.emplace_back(token);
  }
  json file = {{"config",
                {{"pattern", R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+)"},
                 {"num_vocab_tokens", tokens.size()},
                 {"default_vocab_size", 20 + tokens.size() - 1},
                 {"default_num_special_tokens", 20},
                 {"version", "v3"}}},
               {"vocab", json::array()}};
  for (size_t i = 0; i < tokens.size(); ++i) {
    file["vocab"].push_back(
        {{"rank", i}, {"token_bytes", base64(tokens[i])}, {"token_str", nullptr}});
  }
  return file;
}

std::unique_ptr<Tokenizer> load(const json& file) {
  return load_tokenizer_file("tekken.json", file.dump(), {}, 2000);
}

TEST(TekkenTokenizer, EncodesAsMistralCommon) {
  const auto tokenizer = load(small_file());
  const auto ids = [&](const char* text) { return tokenizer->encode(text); };
  EXPECT_THAT(ids("aaaaa"), ElementsAre(276, 277));
  EXPECT_THAT(ids("aaaa"), ElementsAre(276, 276));
  EXPECT_THAT(ids(" babab"), ElementsAre(278, 280));
  EXPECT_THAT(ids("abaab"), ElementsAre(279, 276, 118));
  EXPECT_THAT(ids("xyz"), ElementsAre(282));
  EXPECT_THAT(ids("xxyz"), ElementsAre(140, 282));
  EXPECT_THAT(ids("caf\u00e9s 12"), ElementsAre(119, 117, 122, 281, 135, 52, 69, 70));
  EXPECT_THAT(ids(" aaab"), ElementsAre(52, 277, 118));
  EXPECT_THAT(ids("[INST]"), ElementsAre(111, 93, 98, 103, 104, 113));
  EXPECT_THAT(ids("unused"), ElementsAre(137, 130, 137, 135, 121, 120));
  EXPECT_THAT(ids("\u65e5"), ElementsAre(250, 171, 185));
}

TEST(TekkenTokenizer, KnowsItsSpecialTokens) {
  const auto tokenizer = load(small_file());
  EXPECT_EQ(tokenizer->size(), 284);
  EXPECT_EQ(tokenizer->bos_token(), 1);
  EXPECT_EQ(tokenizer->eos_token(), 2);
  EXPECT_EQ(tokenizer->special_token("[SYSTEM_PROMPT]"), 17);
  EXPECT_EQ(tokenizer->special_token("[TOOL_CONTENT]"), 19);
  EXPECT_THAT(tokenizer->encode_prompt("aa"), ElementsAre(1, 276));
  EXPECT_EQ(tokenizer->decode({1, 276, 281, 278, 2}), "aa\u00e9 b");

  json file = small_file();
  file["special_tokens"] = {{{"rank", 1}, {"token_str", "<s>"}, {"is_control", true}},
                            {{"rank", 0}, {"token_str", "<unk>"}, {"is_control", true}},
                            {{"rank", 2}, {"token_str", "[THINK]"}, {"is_control", false}}};
  const auto other = load(file);
  EXPECT_EQ(other->special_token("[THINK]"), 2);
  EXPECT_EQ(other->special_token("<SPECIAL_19>"), 19);
  EXPECT_EQ(other->special_token("[INST]"), std::nullopt);
  EXPECT_EQ(other->eos_token(), std::nullopt);
}

// Loads the small file after `change` and returns what is wrong with it.
template <typename Change>
std::string problem(const Change& change) {
  json file = small_file();
  change(file);
  return error_of([&] { load(file); }).what();
}

// Every string of up to 13 of two letters: 180,000 ways to divide them. With up to 18 of them the
// ways would take gigabytes.
TEST(TekkenTokenizer, CountsTheWaysToDivideTokens) {
  const auto load_longest = [](size_t longest) {
    std::string tokens;
    size_t rank = 0;
    for (size_t length = 1; length <= longest; ++length) {
      for (size_t number = 0; number < size_t{1} << length; ++number, ++rank) {
        std::string token;
        for (size_t i = 0; i < length; ++i) token += (number >> i & 1) != 0 ? 'a' : 'b';
        tokens += concat(rank == 0 ? "" : ",", R"({"rank":)", rank, R"(,"token_bytes":")",
                         base64(token), R"("})");
      }
    }
    const std::string text =
        concat(R"({"vocab":[)", tokens, R"(],"config":{"pattern":".+","default_vocab_size":)",
               20 + rank, R"(,"default_num_special_tokens":20}})");
    return load_tokenizer_file("tekken.json", text, {}, 1 << 20);
  };
  EXPECT_EQ(load_longest(13)->encode("abbaabbaabbaa").size(), 1u);
  EXPECT_THAT(error_of([&] { load_longest(18); }).what(), HasSubstr("in more than 4000000 ways"));
}

TEST(TekkenTokenizer, RefusesWhatItCannotMean) {
  EXPECT_THAT(problem([](json& file) { file.erase("config"); }), HasSubstr("config is missing"));
  EXPECT_THAT(problem([](json& file) { file["config"].erase("pattern"); }), HasSubstr("pattern"));
  EXPECT_THAT(problem([](json& file) { file["config"]["default_vocab_size"] = 300; }),
              HasSubstr("vocab has 265 tokens, but config.default_vocab_size asks for 280"));
  EXPECT_THAT(problem([](json& file) { file["config"]["default_vocab_size"] = 10; }),
              HasSubstr("default_vocab_size"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["rank"] = 8; }),
              HasSubstr("vocab[7].rank must be 7, got 8"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["token_bytes"] = "B!=="; }),
              HasSubstr("vocab[7].token_bytes must be base64"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["token_bytes"] = "Bw="; }),
              HasSubstr("vocab[7].token_bytes must be base64"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["token_bytes"] = ""; }),
              HasSubstr("must be 1 to 256 bytes, got 0"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["token_bytes"] = std::string(400, 'A'); }),
              HasSubstr("must be 1 to 256 bytes, got 300"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7]["token_bytes"] = "CA=="; }),
              HasSubstr("vocab[8].token_bytes is there twice"));
  EXPECT_THAT(problem([](json& file) { file["vocab"][7].erase("rank"); }),
              HasSubstr("vocab[7] must have a rank and token_bytes"));
  EXPECT_THAT(problem([](json& file) {
                file["special_tokens"] = {{{"rank", 20}, {"token_str", "<s>"}}};
              }),
              HasSubstr("rank"));
  EXPECT_THAT(problem([](json& file) {
                file["special_tokens"] = {{{"rank", 1}, {"token_str", "<s>"}},
                                          {{"rank", 1}, {"token_str", "<t>"}}};
              }),
              HasSubstr("special_tokens has two of rank 1"));
  EXPECT_THAT(error_of([] { load_tokenizer_file("tekken.json", "{}", {}, 2000); }).what(),
              HasSubstr("config is missing"));
  EXPECT_THAT(error_of([] { load_tokenizer_file("tekken.json", "[1]", {}, 2000); }).what(),
              HasSubstr("tekken.json"));
}

}  // namespace
}  // namespace tessera
