// Turning a conversation into the tokens a chat model was trained on.
//
// Template text and message contents stay apart until they are tokenised: only the template can
// produce special tokens, so nothing a user types can end a turn or pose as the system. Formats
// that mark turns with plain text (llama2's [INST], zephyr's <|user|>) cannot keep that text from
// being typed as well.
#pragma once

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

struct ChatFormat;  // engine/text/chat_template_renderers.h

class ChatTemplate {
 public:
  // The renderer called `name` ("llama2", "llama3", "mistral-v1", "mistral-v3", "zephyr", "chatml",
  // "demo", ...). Throws Error with the list of names when unknown.
  static ChatTemplate by_name(std::string_view name);

  // The renderer for the folder's own template, chosen when its text is known exactly (by SHA-256).
  // Throws Error with the hash, and a hint naming --chat-template and --raw, when it is unknown or
  // absent.
  static ChatTemplate for_folder(const ModelFolder& folder);

  // by_name(name), or without a name for_folder(folder).
  static ChatTemplate choose(std::string_view name, const ModelFolder& folder);

  static std::vector<std::string> names();
  const std::string& name() const;

  // The conversation as segments, ending where the assistant's answer begins. Throws Error when the
  // template forbids it (a system message where none is supported, roles that do not alternate).
  std::vector<Segment> render(std::span<const Message> messages) const;

  // render() and tokenise; begins with BOS when the model wants one, never with two. Throws Error
  // when the tokenizer lacks a special token the template needs, and with the message's number when
  // one is not UTF-8.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, std::span<const Message> messages,
                              const EncodeProgress& progress = {}) const;

  // Special tokens that end an answer in this format and exist in the tokenizer.
  std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer) const;

 private:
  explicit ChatTemplate(const ChatFormat& format) : format_(&format) {}
  const ChatFormat* format_;  // in chat_formats(), never null
};

}  // namespace tessera
