// Turning a conversation into the tokens a chat model was trained on.
//
// Template text and message contents stay apart until they are tokenised: only the template can
// produce special tokens, so nothing a user types can end a turn or pose as the system. Formats
// that mark turns with plain text (llama2's [INST], zephyr's <|user|>) cannot keep that text from
// being typed as well.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace tessera {

enum class Role : uint8_t { kSystem, kUser, kAssistant };

constexpr std::string_view to_string(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
  }
  return "unknown";
}

struct Message {
  Role role = Role::kUser;
  std::string content;
};

// One piece of a rendered prompt: a special token of the template, or plain text (of the template
// or of a message).
struct Segment {
  enum class Kind : uint8_t { kSpecialToken, kText };
  Kind kind = Kind::kText;
  std::string content;
};

struct ChatFormat;        // engine/text/chat_template_renderers.h
class JinjaChatTemplate;  // engine/text/jinja_chat_template.h

class ChatTemplate {
 public:
  // The renderer called `name` ("llama2", "llama3", "mistral-v1", "mistral-v3", "zephyr", "chatml",
  // "demo", ...). Throws Error with the list of names when unknown.
  static ChatTemplate by_name(std::string_view name);

  // The folder's own template: a renderer when its text is known exactly (by SHA-256), else its
  // Jinja is run. Throws Error with a hint naming --chat-template and --raw when it is absent or no
  // Jinja.
  static ChatTemplate for_folder(const ModelFolder& folder, const Tokenizer& tokenizer);

  // The Jinja in a file, whatever the folder has.
  static ChatTemplate from_file(const std::string& path, const ModelFolder& folder,
                                const Tokenizer& tokenizer);

  // by_name(choice); from_file() where no renderer but a file is called so; without a choice
  // for_folder().
  static ChatTemplate choose(const std::string& choice, const ModelFolder& folder,
                             const Tokenizer& tokenizer);

  // Tells choices that choose() takes apart by what they mean, not by where it lies: the name of a
  // renderer, "sha256:" and the digits for the content of a file. Throws Error where neither is.
  static std::string fingerprint(const std::string& choice);

  static std::vector<std::string> names();
  // Of the renderer, or "jinja".
  const std::string& name() const;

  // The conversation as segments, ending where the assistant's answer begins. Throws Error when the
  // template forbids it (a system message where none is supported, roles that do not alternate) or,
  // with line and column, fails.
  std::vector<Segment> render(std::span<const Message> messages) const;

  // render() and tokenise; begins with BOS when the model wants one, never with two. Throws Error
  // when the tokenizer lacks a special token the template needs, and with the message's number when
  // one is not UTF-8.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, std::span<const Message> messages,
                              const EncodeProgress& progress = {}) const;

  // Special tokens that end an answer in this format and exist in the tokenizer; of Jinja, which
  // does not say, none.
  std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer) const;

 private:
  explicit ChatTemplate(const ChatFormat& format) : format_(&format) {}
  explicit ChatTemplate(std::shared_ptr<const JinjaChatTemplate> jinja)
      : jinja_(std::move(jinja)) {}

  // One of them is there.
  const ChatFormat* format_ = nullptr;  // in chat_formats()
  std::shared_ptr<const JinjaChatTemplate> jinja_;
};

}  // namespace tessera
