// tokenizer_config.json and the files around it: special tokens and the chat template.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// The largest file of a template.
constexpr uint64_t kMaxChatTemplateBytes = uint64_t{1} << 20;

struct AddedToken {
  int64_t id = 0;
  std::string content;
  bool special = false;
  bool lstrip = false;       // swallows white space before it
  bool rstrip = false;       // swallows white space after it
  bool single_word = false;  // only between other characters than letters and digits
  bool normalized = false;   // looked for after the text was normalised, as the token is then
};

// One of several templates, which tokenizer_config.json tells apart by name.
struct NamedChatTemplate {
  std::string name;
  std::string source;  // Jinja
};

// Every field may be absent. The tokenizer (engine/text/tokenizer.h) interprets it.
struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> unk_token;
  // What else templates know by name: pad_token, sep_token, image_token, ...
  std::map<std::string, std::string> other_tokens;
  // Of tokenizer.model; a tokenizer.json has its own template.
  std::optional<bool> add_bos_token;
  std::optional<bool> add_eos_token;
  std::optional<bool> legacy;
  std::optional<bool> add_prefix_space;
  // Jinja source; of several the one called "default". chat_template.jinja wins over all of them.
  std::optional<std::string> chat_template;
  std::vector<NamedChatTemplate> named_chat_templates;  // where there are several, all
  std::vector<AddedToken> added_tokens;                 // by id
  std::vector<std::string> files;                       // paths of what was read
};

// Reads what the folder has of tokenizer_config.json, chat_template.jinja,
// additional_chat_templates/NAME.jinja, special_tokens_map.json and, where the first lacks
// added_tokens_decoder, added_tokens.json; where it lacks chat_template, chat_template.json.
// special_tokens_map.json names the tokens that tokenizer_config.json does not name, and all of
// them where that is so old that it lacks added_tokens_decoder. Throws Error naming file and field.
TokenizerConfig read_tokenizer_config(const std::string& folder);

}  // namespace tessera
