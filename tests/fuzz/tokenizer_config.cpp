// tokenizer_config.json, and the tokenizer and chat template that it configures.
#include "model_loaders/tokenizer_config.h"

#include <algorithm>

#include "engine/text/chat_template.h"
#include "tests/engine/text/sentencepiece_builder.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

constexpr TokenId kUnknown = 0;  // whatever the configuration calls it

// Loads in a tenth of a millisecond.
std::string few_pieces() {
  SentencePieceBuilder builder;
  builder.has_byte_fallback = false;
  builder.add("<unk>", PieceType::kUnknown);
  builder.add("<s>", PieceType::kControl);
  builder.add("</s>", PieceType::kControl);
  builder.add("<|end|>", PieceType::kUserDefined);
  builder.add_merges({"a", "b", "ab", kPieceSpace.data()});
  return builder.build();
}

const MemoryFolder& model_folder() {
  static const MemoryFolder* const folder = [] {
    static const MemoryFolder made("tokenizer_config.json");
    made.folder().write("tokenizer.model", few_pieces());
    return &made;
  }();
  return *folder;
}

void check_fields(const TokenizerConfig& config) {
  for (const auto* const text :
       {&config.bos_token, &config.eos_token, &config.unk_token, &config.chat_template}) {
    if (*text) require_utf8(**text, "a string of tokenizer_config.json");
  }
  for (const AddedToken& token : config.added_tokens) require_utf8(token.content, "a token");
  require(std::ranges::adjacent_find(config.added_tokens, std::ranges::greater_equal{},
                                     &AddedToken::id) == config.added_tokens.end(),
          "added tokens are in the order of their ids, each once");
}

void check_tokenizer(const Tokenizer& tokenizer) {
  for (const TokenId id : tokenizer.encode("a<s> b<|end|>", /*at_start=*/true)) {
    require(id >= 0 && id < tokenizer.size(), "tokens of a text are in the vocabulary");
    require(!tokenizer.is_special(id) || id == kUnknown, "no text becomes a special token");
  }
  for (TokenId id = 0; id < tokenizer.size(); ++id) {
    require_utf8(tokenizer.decode({id}), "decoded text");
  }
}

void read(std::string_view bytes) {
  const MemoryFolder& memory = model_folder();
  memory.replace(bytes);
  ModelFolder folder;
  folder.path = memory.folder().path();
  folder.tokenizer = read_tokenizer_config(folder.path);
  folder.tokenizer_path = memory.folder().path("tokenizer.model");
  folder.config.vocab_size = 40;
  check_fields(folder.tokenizer);
  const auto tokenizer = Tokenizer::load(folder);
  check_tokenizer(*tokenizer);
  if (!folder.tokenizer.chat_template) return;
  const Message message{Role::kUser, "a</s>"};
  ChatTemplate::choose("", folder, *tokenizer).encode(*tokenizer, {&message, 1});
  const ChatInputs tools = {.tools = R"([{"name": "a</s>"}])"};
  ChatTemplate::choose("", folder, *tokenizer).encode(*tokenizer, {&message, 1}, tools);
}

std::vector<std::string> seeds() {
  return {
      R"({"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"},
          "unk_token": null, "add_bos_token": true, "add_eos_token": false, "legacy": false,
          "add_prefix_space": null, "chat_template": "{{ bos_token }}",
          "added_tokens_decoder": {
            "10": {"content": "<|x|>", "lstrip": false, "rstrip": true, "special": true},
            "2": {"content": "</s>", "lstrip": true, "special": true}, "3": {"content": "x"}}})",
      R"({"chat_template": [{"name": "tool_use", "template": "t"},
                            {"name": "default", "template": "{{ messages }}"}]})",
      R"({"chat_template": [{"name": "tool_use", "template": "{{ tools | tojson }}"},
                            {"name": "default", "template": "{{ messages }}"}]})",
      R"({"chat_template": [{"name": "tool\u202euse", "template": "t"},
                            {"name": "default", "template": "{{ messages"}]})",
      R"({"legacy": true, "add_prefix_space": false})",
      R"({"bos_token": "nope"})",
      R"({"eos_token": "\u001b[31m\u202e"})",
      R"({"added_tokens_decoder": {"0": {"content": "a", "special": true},
                                   "00": {"content": "b"}}})",
      R"({"added_tokens_decoder": {"2147483647": {"content": "a"}}})",
      R"({"added_tokens_decoder": {"39": {"content": "a", "special": true}}, "bos_token": "a"})",
      R"({"added_tokens_decoder": {"1": null}})",
  };
}

}  // namespace

FuzzTarget tokenizer_config_target() {
  return {"tokenizer_config",
          read,
          seeds(),
          {"\"bos_token\"",
           "\"eos_token\"",
           "\"unk_token\"",
           "\"add_bos_token\"",
           "\"add_eos_token\"",
           "\"legacy\"",
           "\"add_prefix_space\"",
           "\"chat_template\"",
           "\"added_tokens_decoder\"",
           "\"content\"",
           "\"special\"",
           "\"lstrip\"",
           "\"rstrip\"",
           "\"name\"",
           "\"default\"",
           "\"template\"",
           "\"<s>\"",
           "\"</s>\"",
           "\"<unk>\"",
           "\"a\"",
           "true",
           "null",
           "\\u0000",
           "\\u202e",
           "\"4\"",
           "\"39\"",
           "\"2147483647\""}};
}

}  // namespace tessera
