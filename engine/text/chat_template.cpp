#include "engine/text/chat_template.h"

#include <algorithm>

#include "engine/text/built_in_templates.h"
#include "engine/text/jinja_chat_template.h"
#include "engine/text/sha256.h"
#include "engine/text/utf8.h"
#include "kernels/tensor/check.h"
#include "model_loaders/file_reader.h"
#include "model_loaders/printable.h"
#include "model_loaders/tokenizer_config.h"

namespace tessera {
namespace {

constexpr const char* kToolTemplate = "tool_use";
// What ends a turn where a template writes it. generation_config.json should say so and does not
// always.
constexpr std::string_view kTurnEnds[] = {"</s>",       "<|im_end|>", "<|eot_id|>",
                                          "<|eom_id|>", "<|end|>",    "<|end_of_text|>"};

// Everything that --chat-template takes but files. A folder has a few names, or is not what it says
// it is.
std::string names_for(const ModelFolder& folder) {
  constexpr size_t kMostOfFolder = 8;
  const std::vector<NamedChatTemplate>& named = folder.tokenizer.named_chat_templates;
  std::string names;
  const auto add = [&names](std::string_view name) {
    names += concat(names.empty() ? "" : ", ", name);
  };
  for (size_t i = 0; i < std::min(named.size(), kMostOfFolder); ++i) add(printable(named[i].name));
  if (named.size() > kMostOfFolder) {
    add(concat(named.size() - kMostOfFolder, " more of the folder"));
  }
  for (const std::string& name : ChatTemplate::names()) add(name);
  return names;
}

std::string hint_for_choosing(const ModelFolder& folder) {
  return concat("choose one with --chat-template NAME (", names_for(folder),
                ") or send plain text: generate --raw, /v1/completions in a batch");
}

const std::string* find_named(const ModelFolder& folder, std::string_view name) {
  for (const NamedChatTemplate& named : folder.tokenizer.named_chat_templates) {
    if (named.name == name) return &named.source;
  }
  return nullptr;
}

const BuiltInTemplate* find_built_in(std::string_view name) {
  const auto templates = built_in_templates();
  const auto found = std::ranges::find(templates, name, &BuiltInTemplate::name);
  return found == templates.end() ? nullptr : &*found;
}

// What a choice means.
struct TemplateSource {
  std::string name;
  std::string path;  // begins its errors
  std::string text;
  const BuiltInTemplate* built_in = nullptr;  // if it is one
  bool is_file = false;
};

TemplateSource find_source(const std::string& choice, const ModelFolder& folder) {
  if (choice.empty()) {
    if (!folder.tokenizer.chat_template) {
      throw Error(concat(folder.path, ": the model has no chat template"),
                  hint_for_choosing(folder));
    }
    return {.name = "jinja", .path = folder.path, .text = *folder.tokenizer.chat_template};
  }
  if (const std::string* const named = find_named(folder, choice)) {
    return {.name = choice, .path = folder.path, .text = *named};
  }
  if (const BuiltInTemplate* const built_in = find_built_in(choice)) {
    return {.name = choice, .path = choice, .text = built_in->source, .built_in = built_in};
  }
  if (file_exists(choice)) {
    return {.name = "jinja",
            .path = choice,
            .text = read_whole_file(choice, kMaxChatTemplateBytes),
            .is_file = true};
  }
  throw Error(concat("unknown chat template '", printable(choice),
                     "' for --chat-template: no file of that name, and there are ",
                     names_for(folder)));
}

void require_special_tokens(const BuiltInTemplate& format, const Tokenizer& tokenizer) {
  for (const std::string_view content : format.special_tokens) {
    CHECK(tokenizer.special_token(content), tokenizer.path(), ": has no special token '", content,
          "', which the chat template ", format.name, " needs");
  }
}

void check_messages(std::span<const Message> messages, const JinjaChatTemplate& chat_template) {
  CHECK(!messages.empty(), "a conversation needs at least one message");
  for (size_t i = 0; i < messages.size(); ++i) {
    for (const std::string* const text : {&messages[i].content, &messages[i].reasoning}) {
      const auto invalid = find_invalid_utf8(*text);
      CHECK(!invalid, "message ", i + 1, " is not UTF-8 at byte ", invalid.value_or(0));
    }
    CHECK(messages[i].tool_calls.empty() || chat_template.mentions("tool_calls"), "message ", i + 1,
          " has tool_calls, which the chat template does not mention");
  }
}

}  // namespace

ChatTemplate ChatTemplate::choose(const std::string& choice, const ModelFolder& folder,
                                  const Tokenizer& tokenizer,
                                  std::vector<TemplateArgument> arguments) {
  const TemplateSource source = find_source(choice, folder);
  CHECK(source.text.find_first_not_of(" \t\r\n") != std::string::npos, source.path,
        ": the chat template is empty");
  if (source.built_in != nullptr) require_special_tokens(*source.built_in, tokenizer);
  const auto load = [&](const std::string& text) {
    return std::make_shared<const JinjaChatTemplate>(
        text,
        JinjaSurroundings{source.path, hint_for_choosing(folder), folder.tokenizer, arguments},
        tokenizer);
  };
  const std::string* const tools = choice.empty() ? find_named(folder, kToolTemplate) : nullptr;
  ChatTemplate chosen(source.name, load(source.text), tools == nullptr ? nullptr : load(*tools));
  for (const TemplateArgument& argument : arguments) {
    CHECK(chosen.mentions(argument.name), source.path, ": the chat template has no variable '",
          printable(argument.name), "'");
  }
  return chosen;
}

std::string ChatTemplate::fingerprint(const std::string& choice, const ModelFolder& folder) {
  const TemplateSource source = find_source(choice, folder);
  return source.is_file ? concat("sha256:", sha256(source.text)) : source.name;
}

std::vector<std::string> ChatTemplate::names() {
  std::vector<std::string> names;
  for (const BuiltInTemplate& format : built_in_templates()) names.emplace_back(format.name);
  return names;
}

bool ChatTemplate::mentions(std::string_view word) const {
  return jinja_->mentions(word) || (tools_jinja_ && tools_jinja_->mentions(word));
}

const JinjaChatTemplate& ChatTemplate::template_for(const ChatInputs& inputs) const {
  return tools_jinja_ && !inputs.tools.empty() ? *tools_jinja_ : *jinja_;
}

std::vector<Segment> ChatTemplate::render(std::span<const Message> messages,
                                          const ChatInputs& inputs,
                                          const EncodeProgress& progress) const {
  const JinjaChatTemplate& chosen = template_for(inputs);
  check_messages(messages, chosen);
  CHECK(inputs.tools.empty() || chosen.mentions("tools"),
        "the chat template does not mention tools");
  for (const TemplateArgument& argument : inputs.arguments) {
    CHECK(chosen.mentions(argument.name), "the chat template has no variable '",
          printable(argument.name), "'");
  }
  const Pause pause = [&] {
    if (progress) progress(0, content_bytes(messages));
  };
  return chosen.render(messages, inputs, pause);
}

std::vector<TokenId> ChatTemplate::encode(const Tokenizer& tokenizer,
                                          std::span<const Message> messages,
                                          const ChatInputs& inputs,
                                          const EncodeProgress& progress) const {
  return encode_segments(tokenizer, render(messages, inputs, progress), progress);
}

std::vector<TokenId> ChatTemplate::stop_tokens(const Tokenizer& tokenizer) const {
  std::vector<TokenId> tokens;
  for (const std::string_view content : kTurnEnds) {
    const auto token = tokenizer.special_token(content);
    const bool is_written =
        jinja_->writes(content) || (tools_jinja_ && tools_jinja_->writes(content));
    if (token && is_written) tokens.push_back(*token);
  }
  return tokens;
}

}  // namespace tessera
