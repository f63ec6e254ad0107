#include "model_loaders/tokenizer_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/model_loaders/temporary_folder.h"
#include "tests/model_loaders/thrown_error.h"

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TokenizerConfig read_main(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", text);
  return read_tokenizer_config(folder.path());
}

std::string tokenizer_config_error(const std::string& text) {
  return thrown_error([&] { read_main(text); }).message;
}

TEST(TokenizerConfig, IsEmptyInAnEmptyFolder) {
  const TemporaryFolder folder;
  const TokenizerConfig config = read_tokenizer_config(folder.path());
  EXPECT_EQ(config.bos_token, std::nullopt);
  EXPECT_EQ(config.chat_template, std::nullopt);
  EXPECT_THAT(config.added_tokens, IsEmpty());
}

TEST(TokenizerConfig, ReadsEveryField) {
  const TokenizerConfig config = read_main(R"({
      "bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"},
      "unk_token": null, "add_bos_token": true, "add_eos_token": false, "legacy": false,
      "add_prefix_space": null, "chat_template": "{{ bos_token }}",
      "model_max_length": 1000000000000000019884624838656,
      "added_tokens_decoder": {
        "32000": {"content": "<|end|>", "lstrip": false, "normalized": false, "rstrip": true,
                  "single_word": false, "special": true},
        "2": {"content": "</s>", "lstrip": true, "special": true},
        "10": {"content": "x"}}})");
  EXPECT_EQ(config.bos_token, "<s>");
  EXPECT_EQ(config.eos_token, "</s>");
  EXPECT_EQ(config.unk_token, std::nullopt);
  EXPECT_EQ(config.add_bos_token, true);
  EXPECT_EQ(config.add_eos_token, false);
  EXPECT_EQ(config.legacy, false);
  EXPECT_EQ(config.add_prefix_space, std::nullopt);
  EXPECT_EQ(config.chat_template, "{{ bos_token }}");
  ASSERT_EQ(config.added_tokens.size(), 3u);
  EXPECT_EQ(config.added_tokens[0].id, 2);
  EXPECT_TRUE(config.added_tokens[0].lstrip);
  EXPECT_EQ(config.added_tokens[1].id, 10);
  EXPECT_EQ(config.added_tokens[1].content, "x");
  EXPECT_FALSE(config.added_tokens[1].special);
  EXPECT_EQ(config.added_tokens[2].id, 32000);
  EXPECT_TRUE(config.added_tokens[2].rstrip);
  EXPECT_TRUE(config.added_tokens[2].special);
}

TEST(TokenizerConfig, TakesTheDefaultOfNamedTemplates) {
  const TokenizerConfig config =
      read_main(R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                      {"name": "default", "template": "d"}]})");
  EXPECT_EQ(config.chat_template, "d");
  ASSERT_EQ(config.named_chat_templates.size(), 2u);
  EXPECT_EQ(config.named_chat_templates[0].name, "tool_use");
  EXPECT_EQ(config.named_chat_templates[0].source, "t");
  EXPECT_EQ(read_main(R"({"chat_template": [{"name": "rag", "template": "r"}]})").chat_template,
            std::nullopt);
}

TEST(TokenizerConfig, PrefersTheTemplateFile) {
  for (const char* const old : {R"("old")", R"([{"name": "tool_use", "template": "old"}])"}) {
    const TemporaryFolder folder;
    folder.write("tokenizer_config.json", concat(R"({"chat_template": )", old, "}"));
    folder.write("chat_template.jinja", "new");
    const TokenizerConfig config = read_tokenizer_config(folder.path());
    EXPECT_EQ(config.chat_template, "new");
    EXPECT_TRUE(config.named_chat_templates.empty());
  }
}

// Mistral-Small-3.1 has its template there alone, Gemma 3 the same one twice.
TEST(TokenizerConfig, TheTemplateOfAProcessorIsTakenWhereThereIsNoOther) {
  const TemporaryFolder folder;
  folder.write("chat_template.json", R"({"chat_template": "processor's"})");
  EXPECT_EQ(read_tokenizer_config(folder.path()).chat_template, "processor's");
  folder.write("tokenizer_config.json", R"({"chat_template": "own"})");
  EXPECT_EQ(read_tokenizer_config(folder.path()).chat_template, "own");
  folder.write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_EQ(read_tokenizer_config(folder.path()).chat_template, "processor's");
  folder.write("chat_template.jinja", "new");
  EXPECT_EQ(read_tokenizer_config(folder.path()).chat_template, "new");
}

TEST(TokenizerConfig, TemplatesMayBeFilesOfAFolder) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "o"}]})");
  folder.write("chat_template.jinja", "new");
  EXPECT_TRUE(read_tokenizer_config(folder.path()).named_chat_templates.empty());
  folder.write("additional_chat_templates/tool_use.jinja", "t");
  folder.write("additional_chat_templates/rag.jinja", "r");
  folder.write("additional_chat_templates/notes.txt", "x");
  const TokenizerConfig config = read_tokenizer_config(folder.path());
  EXPECT_EQ(config.chat_template, "new");
  std::string all;
  for (const auto& [name, source] : config.named_chat_templates) all += name + "=" + source + " ";
  EXPECT_EQ(all, "default=new rag=r tool_use=t ");
}

TEST(TokenizerConfig, FilesTakeThePlaceOfTemplatesOfTheirName) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "d"},
                                                              {"name": "rag", "template": "o"}]})");
  folder.write("additional_chat_templates/rag.jinja", "r");
  const TokenizerConfig config = read_tokenizer_config(folder.path());
  EXPECT_EQ(config.chat_template, "d");
  ASSERT_EQ(config.named_chat_templates.size(), 2u);
  EXPECT_EQ(config.named_chat_templates[1].source, "r");
}

TEST(TokenizerConfig, FallsBackToTheOlderFiles) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"unk_token": "<unk>"})");
  folder.write("special_tokens_map.json",
               R"({"eos_token": {"content": "</s>"}, "pad_token": "<pad>"})");
  folder.write("added_tokens.json", R"({"<|im_start|>": 32001, "</s>": 2, "<pad>": 3})");
  const TokenizerConfig config = read_tokenizer_config(folder.path());
  EXPECT_EQ(config.unk_token, "<unk>");
  EXPECT_EQ(config.eos_token, "</s>");
  ASSERT_EQ(config.added_tokens.size(), 3u);
  EXPECT_TRUE(config.added_tokens[0].special);
  EXPECT_TRUE(config.added_tokens[1].special);
  EXPECT_EQ(config.added_tokens[2].content, "<|im_start|>");
  EXPECT_FALSE(config.added_tokens[2].special);
}

// As transformers 4.46 to 5.24 have it.
TEST(TokenizerConfig, TheMapOfSpecialTokensWinsWhereThereIsNoAddedTokensDecoder) {
  const TemporaryFolder folder;
  folder.write("special_tokens_map.json", R"({"eos_token": "<|im_end|>", "pad_token": "<pad>"})");
  const std::string names = R"("eos_token": "</s>", "pad_token": "</s>")";
  folder.write("tokenizer_config.json", concat('{', names, '}'));
  const TokenizerConfig old = read_tokenizer_config(folder.path());
  EXPECT_EQ(old.eos_token, "<|im_end|>");
  EXPECT_THAT(old.other_tokens, ElementsAre(Pair("pad_token", "<pad>")));
  folder.write("tokenizer_config.json",
               concat('{', names, R"(, "added_tokens_decoder": {"2": {"content": "</s>"}}})"));
  const TokenizerConfig recent = read_tokenizer_config(folder.path());
  EXPECT_EQ(recent.eos_token, "</s>");
  EXPECT_THAT(recent.other_tokens, ElementsAre(Pair("pad_token", "</s>")));
}

TEST(TokenizerConfig, ReadsTheTokensThatTemplatesKnowByName) {
  const TokenizerConfig config = read_main(R"({
      "bos_token": "<s>", "pad_token": {"content": "<pad>"}, "sep_token": "<sep>",
      "cls_token": null, "mask_token": null, "image_token": "<image>", "add_bos_token": true,
      "extra_special_tokens": {"audio_token": "<audio>", "boi": {"content": "<boi>"}}})");
  EXPECT_THAT(config.other_tokens,
              ElementsAre(Pair("audio_token", "<audio>"), Pair("boi", "<boi>"),
                          Pair("image_token", "<image>"), Pair("pad_token", "<pad>"),
                          Pair("sep_token", "<sep>")));
  EXPECT_THAT(read_main(R"({"extra_special_tokens": ["<x>"]})").other_tokens, IsEmpty());
}

TEST(TokenizerConfig, RefusesMalformedFields) {
  EXPECT_THAT(tokenizer_config_error(R"({"bos_token": 1})"),
              HasSubstr("bos_token must be a string, got 1"));
  EXPECT_THAT(tokenizer_config_error(R"({"bos_token": {}})"),
              HasSubstr("bos_token.content is missing"));
  EXPECT_THAT(tokenizer_config_error(R"({"split_special_tokens": true})"),
              HasSubstr("split_special_tokens is true, which is not supported"));
  EXPECT_EQ(tokenizer_config_error(R"({"split_special_tokens": false})"), "");
  EXPECT_THAT(tokenizer_config_error(R"({"legacy": "no"})"),
              HasSubstr("legacy must be true or false"));
  EXPECT_THAT(tokenizer_config_error(R"({"chat_template": 5})"),
              HasSubstr("chat_template must be a string or a list of objects, got 5"));
  EXPECT_THAT(tokenizer_config_error(R"({"chat_template": ["x"]})"),
              HasSubstr("chat_template must be a string or a list of objects, got \"x\""));
  EXPECT_THAT(tokenizer_config_error(R"({"chat_template": {"name": "default"}})"),
              HasSubstr("chat_template must be a string or a list of objects, got an object"));
  for (const char* const id : {"-1", "x", "1x", "", "99999999999", "2147483648", " 1"}) {
    EXPECT_THAT(tokenizer_config_error(
                    concat(R"({"added_tokens_decoder": {")", id, R"(": {"content": "x"}}})")),
                HasSubstr("is not a token id"))
        << id;
  }
  EXPECT_THAT(tokenizer_config_error(R"({"added_tokens_decoder": {"1": null}})"),
              HasSubstr("added_tokens_decoder.1 must be an object"));
  EXPECT_THAT(tokenizer_config_error(
                  R"({"added_tokens_decoder": {"1": {"content": "a"}, "01": {"content": "b"}}})"),
              HasSubstr("two added tokens have the id 1"));
}

}  // namespace
}  // namespace tessera
