#include "model_loaders/tokenizer_config.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/json.h"
#include "model_loaders/printable.h"
#include "model_loaders/token_ids.h"

namespace tessera {
namespace {

// "<s>" or {"content": "<s>", ...}.
std::optional<std::string> find_token(const JsonObject& json, std::string_view key) {
  if (!json.is_object(key)) return json.find_string(key);
  return json.find_object(key)->get_string("content");
}

// Sets the tokens that `json` names: those that have no name yet, or all.
void read_named_tokens(const JsonObject& json, bool replaces, TokenizerConfig& config) {
  const std::pair<std::string_view, std::optional<std::string>*> fields[] = {
      {"bos_token", &config.bos_token},
      {"eos_token", &config.eos_token},
      {"unk_token", &config.unk_token}};
  for (const auto& [key, token] : fields) {
    std::optional<std::string> content = find_token(json, key);
    if (content && (replaces || !*token)) *token = std::move(content);
  }
  const auto is_field = [&](const std::string& key) {
    return std::ranges::any_of(fields, [&](const auto& field) { return field.first == key; });
  };
  const auto add_other = [&](const JsonObject& names, const std::string& key) {
    if (!names.is_string(key) && !names.is_object(key)) return;  // such as add_bos_token
    std::string content = *find_token(names, key);
    if (replaces || !config.other_tokens.contains(key)) {
      config.other_tokens.insert_or_assign(key, std::move(content));
    }
  };
  for (const std::string& key : json.keys()) {
    if (key.ends_with("_token") && !is_field(key)) add_other(json, key);
  }
  for (const char* const key : {"extra_special_tokens", "model_specific_special_tokens"}) {
    if (!json.is_object(key)) continue;  // a list names nothing
    const JsonObject names = *json.find_object(key);
    for (const std::string& name : names.keys()) add_other(names, name);
  }
}

// additional_chat_templates/NAME.jinja, beside the default of chat_template.jinja. They take the
// place of those of the same name.
void add_template_files(const std::string& folder, TokenizerConfig& config) {
  constexpr size_t kMaxTemplates = 64;
  std::map<std::string, std::string> paths;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem)) {
    if (entry.path().extension() == ".jinja") paths[entry.path().stem()] = entry.path();
  }
  CHECK(!problem || problem == std::errc::no_such_file_or_directory, folder, ": ",
        problem.message());
  CHECK(paths.size() <= kMaxTemplates, folder, ": more than ", kMaxTemplates, " templates");
  std::vector<NamedChatTemplate>& templates = config.named_chat_templates;
  if (!paths.empty() && templates.empty() && config.chat_template) {
    templates.push_back({.name = "default", .source = *config.chat_template});
  }
  for (const auto& [name, path] : paths) {
    std::erase_if(templates, [&](const NamedChatTemplate& other) { return other.name == name; });
    templates.push_back({.name = name, .source = read_whole_file(path, kMaxChatTemplateBytes)});
    config.files.push_back(path);
    if (name == "default") config.chat_template = templates.back().source;
  }
}

// A template, or a list of named ones of which "default" is for chat.
void read_chat_templates(const JsonObject& json, TokenizerConfig& config) {
  constexpr std::string_view kKey = "chat_template";
  if (json.is_string(kKey)) {
    config.chat_template = json.find_string(kKey);
    return;
  }
  const auto named_templates = json.find_objects(kKey, "a string or a list of objects");
  if (!named_templates) return;
  for (const JsonObject& named : *named_templates) {
    config.named_chat_templates.push_back(
        {.name = named.get_string("name"), .source = named.get_string("template")});
    if (config.named_chat_templates.back().name == "default") {
      config.chat_template = config.named_chat_templates.back().source;
    }
  }
}

int64_t parse_token_id(const std::string& text, const JsonObject& json) {
  int64_t id = -1;
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, id);
  CHECK(result.ec == std::errc() && result.ptr == end && id >= 0 && id <= kMaxTokenId, json.path(),
        ": added_tokens_decoder: '", printable(text), "' is not a token id");
  return id;
}

// {"32000": {"content": "<|end|>", "special": true, ...}}
std::vector<AddedToken> read_added_tokens_decoder(const JsonObject& decoder) {
  std::vector<AddedToken> tokens;
  for (const std::string& key : decoder.keys()) {
    const int64_t id = parse_token_id(key, decoder);
    const std::optional<JsonObject> token = decoder.find_object(key);
    CHECK(token, decoder.path(), ": ", decoder.field(key), " must be an object, got null");
    tokens.push_back({.id = id,
                      .content = token->get_string("content"),
                      .special = token->get_bool_or("special", false),
                      .lstrip = token->get_bool_or("lstrip", false),
                      .rstrip = token->get_bool_or("rstrip", false)});
  }
  return tokens;
}

// {"<|end|>": 32000}; says nothing else, so the tokens that have a role are the special ones.
std::vector<AddedToken> read_added_tokens(const JsonObject& json, const TokenizerConfig& config) {
  std::vector<AddedToken> tokens;
  const auto is_other = [&](const std::string& content) {
    return std::ranges::any_of(config.other_tokens,
                               [&](const auto& token) { return token.second == content; });
  };
  for (const std::string& content : json.keys()) {
    const bool special = content == config.bos_token || content == config.eos_token ||
                         content == config.unk_token || is_other(content);
    const int64_t id = json.get_integer(content, 0, kMaxTokenId);
    tokens.push_back({.id = id, .content = content, .special = special});
  }
  return tokens;
}

void sort_and_check(std::vector<AddedToken>& tokens, const std::string& path) {
  std::ranges::sort(tokens, {}, &AddedToken::id);
  const auto same = std::ranges::adjacent_find(tokens, {}, &AddedToken::id);
  CHECK(same == tokens.end(), path, ": two added tokens have the id ", same->id);
}

void read_main_file(const JsonObject& json, TokenizerConfig& config) {
  read_named_tokens(json, /*replaces=*/true, config);
  // Then not even what a chat template writes would be a special token.
  CHECK(!json.find_bool("split_special_tokens").value_or(false), json.path(),
        ": split_special_tokens is true, which is not supported");
  config.add_bos_token = json.find_bool("add_bos_token");
  config.add_eos_token = json.find_bool("add_eos_token");
  config.legacy = json.find_bool("legacy");
  config.add_prefix_space = json.find_bool("add_prefix_space");
  read_chat_templates(json, config);
  if (const auto decoder = json.find_object("added_tokens_decoder")) {
    config.added_tokens = read_added_tokens_decoder(*decoder);
    sort_and_check(config.added_tokens, json.path());
  }
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::string& folder) {
  TokenizerConfig config;
  // The path of a file that is about to be read; nothing where the folder has none of this name.
  const auto find_file = [&](const char* name) -> std::optional<std::string> {
    std::string path = join_path(folder, name);
    if (!file_exists(path)) return std::nullopt;
    return config.files.emplace_back(std::move(path));
  };
  if (const auto path = find_file("tokenizer_config.json")) {
    read_main_file(JsonObject::read(*path), config);
  }
  if (const auto path = find_file("special_tokens_map.json")) {
    // transformers asks this file only where the other lacks added_tokens_decoder, and then takes
    // what this one says.
    read_named_tokens(JsonObject::read(*path), /*replaces=*/config.added_tokens.empty(), config);
  }
  if (config.added_tokens.empty()) {
    if (const auto path = find_file("added_tokens.json")) {
      config.added_tokens = read_added_tokens(JsonObject::read(*path), config);
      sort_and_check(config.added_tokens, *path);
    }
  }
  // Where a processor once kept its template, in some folders the only one.
  if (!config.chat_template && config.named_chat_templates.empty()) {
    if (const auto path = find_file("chat_template.json")) {
      read_chat_templates(JsonObject::read(*path), config);
    }
  }
  if (const auto path = find_file("chat_template.jinja")) {
    config.chat_template = read_whole_file(*path, kMaxChatTemplateBytes);
    config.named_chat_templates.clear();
  }
  add_template_files(join_path(folder, "additional_chat_templates"), config);
  return config;
}

}  // namespace tessera
