// tokenizer.json: ids and text as Hugging Face's library gives them (make_tokenizers.py), and what
// must hold whatever the file says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/text/utf8.h"
#include "tests/engine/error_of.h"
#include "tests/engine/text/json_tokenizer_fixture.h"
#include "tests/sanitized.h"

namespace tessera {
namespace {

// Bytes in which anything quadratic would not end.
constexpr size_t kLongText = kIsSanitized ? 200'000 : 1'000'000;

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string name_of(const testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  TextStream stream(tokenizer);
  std::string text;
  for (const TokenId token : tokens) {
    const std::string part = stream.append(token);
    EXPECT_EQ(find_invalid_utf8(part), std::nullopt);
    text += part;
  }
  return text + stream.finish();
}

void expect_tokens_and_text_of_the_library(const Tokenizer& tokenizer, const std::string& name) {
  std::ifstream file(tokenizer_data(name + ".expected.jsonl"));
  int num_lines = 0;
  for (std::string line; std::getline(file, line); ++num_lines) {
    const json expected = json::parse(line);
    const std::vector<TokenId> tokens = tokenizer.encode(expected["text"].get<std::string>());
    EXPECT_EQ(tokens, expected["ids"].get<std::vector<TokenId>>()) << line;
    EXPECT_EQ(tokenizer.decode(tokens), expected["decoded"].get<std::string>()) << line;
    EXPECT_EQ(streamed(tokenizer, tokens), expected["decoded"].get<std::string>()) << line;
  }
  EXPECT_GT(num_lines, 200);
}

class JsonTokenizer : public testing::TestWithParam<const char*> {
 protected:
  std::string text() const { return tokenizer_data_text(concat(GetParam(), ".json")); }
  std::unique_ptr<Tokenizer> load() const { return load_tokenizer_json(text()); }
};

TEST_P(JsonTokenizer, TokensAndTextAreThoseOfTheLibrary) {
  expect_tokens_and_text_of_the_library(*load(), GetParam());
}

TEST_P(JsonTokenizer, NoTextBecomesAnAddedToken) {
  const auto tokenizer = load();
  const json file = json::parse(text());
  for (const json& added : file["added_tokens"]) {
    const std::string content = added["content"];
    const TokenId id = added["id"];
    EXPECT_EQ(tokenizer->special_token(content), id);
    EXPECT_EQ(tokenizer->is_special(id), added["special"].get<bool>());
    const bool is_text = !added["special"] && file["model"]["vocab"].contains(content);
    if (is_text) continue;
    for (const std::string& typed : {content, "a" + content + "b", content + content}) {
      EXPECT_THAT(tokenizer->encode(typed), Not(Contains(id))) << typed;
      EXPECT_THAT(tokenizer->decode(tokenizer->encode(typed)), HasSubstr(typed));
    }
  }
}

TEST_P(JsonTokenizer, AMillionCharactersInARowAreTokens) {
  const auto tokenizer = load();
  for (const char* const unit : {"a", " ", "\n", "中", "!", "1"}) {
    std::string text;
    while (text.size() < kLongText) text += unit;
    // Some put a space in front, some take one away.
    const std::string decoded = tokenizer->decode(tokenizer->encode(text));
    EXPECT_TRUE(decoded.ends_with(std::string_view(text).substr(1))) << unit;
  }
}

TEST_P(JsonTokenizer, ProgressOfAWordThatIsATextIsTold) {
  std::string text;
  while (text.size() < 1'000'000) text += "the";
  int num_calls = 0;
  uint64_t last = 0;
  load()->encode(text, /*at_start=*/true, [&](uint64_t done_bytes, uint64_t total_bytes) {
    EXPECT_EQ(total_bytes, text.size());
    EXPECT_GE(done_bytes, last);
    EXPECT_LE(done_bytes, total_bytes);
    last = done_bytes;
    ++num_calls;
  });
  EXPECT_GT(num_calls, 10);
  EXPECT_EQ(last, text.size());
}

TEST_P(JsonTokenizer, TextsOfSeveralThreadsDoNotMix) {
  const auto tokenizer = load();
  const std::string text = "Paris in 1999, naïve façade 你好 ";
  const std::vector<TokenId> expected = tokenizer->encode(text);
  const auto repeat = [&] {
    for (int i = 0; i < 200; ++i) EXPECT_EQ(tokenizer->encode(text), expected);
  };
  std::thread other(repeat);
  repeat();
  other.join();
}

TEST_P(JsonTokenizer, NoTokenIsLongerThanTheMost) {
  const auto tokenizer = load();
  const auto most = tokenizer->max_token_bytes();
  ASSERT_TRUE(most);
  const std::string text = "when we there can an your which their said if do will";
  EXPECT_GE(tokenizer->encode(text).size() * static_cast<size_t>(*most), text.size());
}

INSTANTIATE_TEST_SUITE_P(, JsonTokenizer,
                         testing::Values("gpt2", "gpt2-prefix", "llama3", "qwen2", "tekken",
                                         "o200k", "deepseek", "cohere", "falcon3", "llama2",
                                         "metaspace", "gemma", "gemma-added"),
                         name_of);

// Their normalizers change texts, so that decoding does not give them back.
class UnigramTokenizer : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Tokenizer> load() const {
    return load_tokenizer_json(tokenizer_data_text(concat(GetParam(), ".json")));
  }
};

TEST_P(UnigramTokenizer, TokensAndTextAreThoseOfTheLibrary) {
  expect_tokens_and_text_of_the_library(*load(), GetParam());
}

TEST_P(UnigramTokenizer, NoTextBecomesASpecialToken) {
  const auto tokenizer = load();
  const TokenId end = *tokenizer->special_token("</s>");
  EXPECT_THAT(tokenizer->encode("a</s>b</s>"), Not(Contains(end)));
  EXPECT_THAT(tokenizer->encode_prompt("a"), ElementsAre(testing::_, end));
}

TEST_P(UnigramTokenizer, AMillionCharactersInARowAreTokens) {
  const auto tokenizer = load();
  for (const char* const unit : {"a", "中", "!", "1", "\u1fbb"}) {
    std::string text;
    while (text.size() < kLongText) text += unit;
    const std::vector<TokenId> tokens = tokenizer->encode(text);
    EXPECT_EQ(streamed(*tokenizer, tokens), tokenizer->decode(tokens)) << unit;
    EXPECT_FALSE(tokens.empty()) << unit;
  }
}

INSTANTIATE_TEST_SUITE_P(, UnigramTokenizer,
                         testing::Values("unigram", "unigram-bytes", "unigram-lower"), name_of);

// The letters a, b, c, and ab, abc, of bytes.
json small() {
  return json::parse(R"({
    "added_tokens": [{"id": 5, "content": "<s>", "special": true, "lstrip": true}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "abc": 4},
              "merges": [["a", "b"], ["ab", "c"]]}})");
}

std::string refusal(const json& file) {
  return error_of([&] { load_tokenizer_json(file.dump()); }).what();
}

TEST(SmallJsonTokenizer, MergesInTheOrderOfTheList) {
  json file = small();
  EXPECT_THAT(load_tokenizer_json(file.dump())->encode("abcab"), ElementsAre(4, 3));
  file["model"]["merges"] = {"b c", "a b"};
  file["model"]["vocab"]["bc"] = 6;
  EXPECT_THAT(load_tokenizer_json(file.dump())->encode("abcab"), ElementsAre(0, 6, 3));
}

TEST(SmallJsonTokenizer, NoMergeMakesASpecialToken) {
  json file = small();
  file["added_tokens"].push_back({{"id", 4}, {"content", "abc"}, {"special", true}});
  EXPECT_THAT(load_tokenizer_json(file.dump())->encode("abc"), ElementsAre(3, 2));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(load_tokenizer_json(file.dump())->encode("abc"), ElementsAre(3, 2));
  TokenizerConfig config;
  config.eos_token = "ab";
  const auto tokenizer = load_tokenizer_json(file.dump(), config);
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(0, 1, 2));
  EXPECT_EQ(tokenizer->eos_token(), 3);
}

TEST(SmallJsonTokenizer, TheTemplateSaysWhatAPromptBeginsWith) {
  json file = small();
  EXPECT_THAT(load_tokenizer_json(file.dump())->prompt_prefix(), IsEmpty());
  const json token = {{"SpecialToken", {{"id", "<s>"}}}};
  const json text = {{"Sequence", {{"id", "A"}}}};
  file["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {token, text}}};
  const auto tokenizer = load_tokenizer_json(file.dump());
  EXPECT_THAT(tokenizer->prompt_prefix(), ElementsAre(*tokenizer->bos_token()));
  EXPECT_EQ(tokenizer->bos_token(), 5);
  EXPECT_TRUE(tokenizer->strips_left(5));
  file["post_processor"]["single"] = {token, token, text};
  const auto two = load_tokenizer_json(file.dump());
  EXPECT_THAT(two->prompt_prefix(), ElementsAre(5, 5));
  EXPECT_EQ(two->bos_token(), std::nullopt);
  EXPECT_THAT(two->encode_prompt("a"), ElementsAre(5, 5, 0));
  file["post_processor"]["single"] = {{{"SpecialToken", {{"id", "<none>"}}}}, text};
  EXPECT_THAT(refusal(file), HasSubstr("puts <none> in front of a text"));
  file["post_processor"]["single"] = {text, {{"SpecialToken", {{"id", "<none>"}}}}};
  EXPECT_THAT(refusal(file), HasSubstr("puts <none> behind a text"));
  file["post_processor"]["single"] = {text, token, text};
  EXPECT_THAT(refusal(file), HasSubstr("has the text twice"));
  file["post_processor"]["single"] = {token};
  EXPECT_THAT(refusal(file), HasSubstr("has no Sequence"));
  // Ids that the template gives a second time.
  file["post_processor"]["single"] = {token, text};
  file["post_processor"]["special_tokens"] = {{"<s>", {{"ids", {5}}}}};
  EXPECT_THAT(load_tokenizer_json(file.dump())->prompt_prefix(), ElementsAre(5));
  file["post_processor"]["special_tokens"] = {{"<s>", {{"ids", {4}}}}};
  EXPECT_THAT(refusal(file), HasSubstr("is not the id 5 that added_tokens gives <s>"));
  const json step = {{"type", "TemplateProcessing"}, {"single", {token, text}}};
  file["post_processor"] = {{"type", "Sequence"}, {"processors", {step, step}}};
  EXPECT_THAT(refusal(file), HasSubstr("a second TemplateProcessing"));
}

TEST(SmallJsonTokenizer, TheTemplateSaysWhatAPromptEndsWith) {
  json file = small();
  const json token = {{"SpecialToken", {{"id", "<s>"}}}};
  const json text = {{"Sequence", {{"id", "A"}}}};
  file["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {text, token, token}}};
  const auto tokenizer = load_tokenizer_json(file.dump());
  EXPECT_THAT(tokenizer->prompt_prefix(), IsEmpty());
  EXPECT_THAT(tokenizer->prompt_suffix(), ElementsAre(5, 5));
  EXPECT_THAT(tokenizer->encode_prompt("a"), ElementsAre(0, 5, 5));
  EXPECT_THAT(tokenizer->encode("a"), ElementsAre(0));
}

// As transformers 5.24 has it, whatever the class of the tokenizer is; earlier ones obeyed for
// some.
TEST(SmallJsonTokenizer, TokenizerConfigDoesNotAlterTheTemplate) {
  json file = small();
  const json token = {{"SpecialToken", {{"id", "<s>"}}}};
  const json text = {{"Sequence", {{"id", "A"}}}};
  for (const bool is_wanted : {false, true}) {
    TokenizerConfig config;
    config.bos_token = config.eos_token = "<s>";
    config.add_bos_token = config.add_eos_token = is_wanted;
    file["post_processor"] = {{"type", "TemplateProcessing"}, {"single", {text}}};
    EXPECT_THAT(load_tokenizer_json(file.dump(), config)->encode_prompt("a"), ElementsAre(0));
    file["post_processor"]["single"] = {token, text, token};
    EXPECT_THAT(load_tokenizer_json(file.dump(), config)->encode_prompt("a"), ElementsAre(5, 0, 5));
  }
}

TEST(SmallJsonTokenizer, OnlyPiecesThatAreNoMoreThanTextAreFoundInText) {
  json file = small();
  const auto tokens = [&](const json& changes, int64_t id = 4) {
    json token = {{"id", id}, {"content", "ac"}, {"special", false}};
    token.update(changes);
    file["added_tokens"] = {token};
    file["model"]["vocab"] = {{"a", 0}, {"b", 1}, {"c", 2}, {"ab", 3}, {"ac", 4}, {"abc", 5}};
    return load_tokenizer_json(file.dump())->encode("bacacab");
  };
  EXPECT_THAT(tokens(json::object()), ElementsAre(1, 4, 4, 3));
  EXPECT_THAT(tokens({{"normalized", true}}), ElementsAre(1, 4, 4, 3));
  for (const json& changes :
       {json{{"special", true}}, json{{"lstrip", true}}, json{{"rstrip", true}},
        json{{"single_word", true}}, json{{"content", ""}}}) {
    EXPECT_THAT(tokens(changes), ElementsAre(1, 0, 2, 0, 2, 3)) << changes;
  }
  EXPECT_THAT(tokens(json::object(), 6), ElementsAre(1, 0, 2, 0, 2, 3));  // beside the vocabulary
}

TEST(SmallJsonTokenizer, UnknownCharactersWithoutATokenForThemAreNothing) {
  EXPECT_THAT(load_tokenizer_json(small().dump())->encode("xyz"), IsEmpty());
  EXPECT_EQ(load_tokenizer_json(small().dump())->max_token_bytes(), std::nullopt);
}

TEST(SmallJsonTokenizer, RefusesByName) {
  const auto with = [](const std::string& pointer, const json& value) {
    json file = small();
    file[json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  EXPECT_THAT(with("/model/type", "WordPiece"),
              HasSubstr("model.type is WordPiece, which is not supp"));
  EXPECT_THAT(with("/model/type", "Unigram"),
              HasSubstr("model.vocab has no scores, but the model"));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model.dropout is not supported"));
  EXPECT_THAT(with("/normalizer/type", "Precompiled"),
              HasSubstr("normalizer.type is Precompiled, which is not"));
  EXPECT_THAT(with("/pre_tokenizer/type", "Bert"), HasSubstr("pre_tokenizer.type is Bert, which"));
  EXPECT_THAT(with("/decoder/type", "CTC"), HasSubstr("decoder.type is CTC, which is not"));
  EXPECT_THAT(with("/decoder", nullptr), HasSubstr("decoder is missing"));
  EXPECT_THAT(with("/post_processor/type", "X"), HasSubstr("post_processor.type is X, which"));
  EXPECT_THAT(with("/model/merges/1", {"ab", "x"}), HasSubstr("merges[1]: model.vocab has no x"));
  EXPECT_THAT(with("/model/merges/1", {"ab", "b"}), HasSubstr("merges[1]: model.vocab has no abb"));
  EXPECT_THAT(with("/model/merges/1", "a b c"), HasSubstr("merges[1] must be two strings"));
  EXPECT_THAT(with("/model/vocab/abc", 2), HasSubstr("has the id 2, as "));
  EXPECT_THAT(with("/model/vocab/abc", 2000), HasSubstr("config.json has vocab_size 2000"));
  EXPECT_THAT(with("/model/unk_token", "?"), HasSubstr("model.unk_token is ?, which model.vocab"));
}

// "ab" twice as likely in one piece as in two; "x" is unknown.
json small_unigram() {
  return json::parse(R"({
    "decoder": {"type": "Fuse"},
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false,
              "vocab": [["<unk>", 0], ["a", -2.5], ["b", -2e0], ["ab", -4], ["bab", -6.25]]}})");
}

TEST(SmallUnigramTokenizer, TakesThePiecesOfTheHighestSum) {
  const auto tokenizer = load_tokenizer_json(small_unigram().dump());
  EXPECT_THAT(tokenizer->encode("ab"), ElementsAre(3));
  EXPECT_THAT(tokenizer->encode("abab"), ElementsAre(3, 3));
  EXPECT_THAT(tokenizer->encode("bab"), ElementsAre(2, 3)) << "6 is less than 6.25";
  EXPECT_THAT(tokenizer->encode("xxaxx"), ElementsAre(0, 1, 0));
  EXPECT_EQ(tokenizer->max_token_bytes(), std::nullopt);
}

// As the library saves files unless it is told otherwise.
TEST(SmallUnigramTokenizer, ReadsAnIndentedFile) {
  const auto tokenizer = load_tokenizer_json(small_unigram().dump(/*indent=*/2));
  EXPECT_THAT(tokenizer->encode("bab"), ElementsAre(2, 3));
}

TEST(SmallUnigramTokenizer, RefusesByName) {
  const auto with = [](const std::string& pointer, const json& value) {
    json file = small_unigram();
    file[json::json_pointer(pointer)] = value;
    return refusal(file);
  };
  EXPECT_THAT(with("/model/unk_id", nullptr), HasSubstr("model.unk_id"));
  EXPECT_THAT(with("/model/unk_id", 5), HasSubstr("model.unk_id"));
  EXPECT_THAT(with("/model/vocab/2/1", "x"),
              HasSubstr("model.vocab[2] must be a string and a num"));
  EXPECT_THAT(with("/model/vocab/2/0", "a"), HasSubstr("model.vocab: a is there twice"));
  EXPECT_THAT(with("/model/type", "BPE"),
              HasSubstr("model.vocab has scores, but the model is BPE"));
  EXPECT_THAT(with("/pre_tokenizer", {{"type", "ByteLevel"}}), HasSubstr("pre_tokenizer of bytes"));
  json empty = small_unigram();
  empty["model"]["vocab"] = json::array();
  EXPECT_THAT(refusal(empty), HasSubstr("model.vocab has no scores"));
}

TEST(SmallJsonTokenizer, RefusesRegularExpressionsThatLibrariesReadDifferently) {
  const auto with = [](const std::string& regex) {
    json file = small();
    const json split = {
        {"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}};
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split}}};
    return refusal(file);
  };
  for (const char* const regex : {"\\w+", "a\\b", "^a", "a$", "[a&&b]", "[a[b]]", "[[:alpha:]]",
                                  "\\p{Han}", "[\\S]", "a{,2}", "(?x)a", "(?<n>a)", "\\G", "\\1"}) {
    EXPECT_THAT(with(regex), HasSubstr("not supported")) << regex;
    EXPECT_THAT(with(regex), HasSubstr("pre_tokenizer.pretokenizers[0]")) << regex;
  }
  EXPECT_THAT(with("(a"), HasSubstr("cannot be read: missing"));
}

TEST(SmallJsonTokenizer, DamagedFilesAreErrors) {
  const std::string good = small().dump();
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_THROW(load_tokenizer_json(good.substr(0, size)), Error) << size;
  }
  EXPECT_THROW(load_tokenizer_json(good + "x"), Error);
  EXPECT_THROW(load_tokenizer_json(std::string(100'000, '[')), Error);
  EXPECT_THROW(load_tokenizer_json("{\"model\":" + std::string(100'000, '[')), Error);
  EXPECT_THAT(refusal(json::array()),
              HasSubstr("tokenizer.json: must be a JSON object, got a list of 0"));
}

TEST(SmallJsonTokenizer, EscapesOfPiecesAreRead) {
  std::string file = small().dump();
  const std::string piece = R"("abc":4)";
  file.replace(file.find(piece), piece.size(), R"("\u0061bc":4,"\ud83d\ude00\n":6)");
  const auto tokenizer = load_tokenizer_json(file);
  EXPECT_THAT(tokenizer->encode("abc"), ElementsAre(4));
  EXPECT_EQ(tokenizer->piece(6), "😀\n");
}

}  // namespace
}  // namespace tessera
