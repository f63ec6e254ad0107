// Turning a conversation into the tokens a chat model was trained on.
//
// A template is Jinja: the folder's own, one that tessera has a name for, or a file. Its text and
// message contents stay apart until they are tokenised: only the template can produce special
// tokens, so nothing a user types can end a turn or pose as the system. Formats that mark turns
// with plain text (llama2's [INST], zephyr's <|user|>) cannot keep that text from being typed as
// well.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/message.h"
#include "engine/text/segment_encoder.h"
#include "engine/text/tokenizer.h"

namespace tessera {

class JinjaChatTemplate;  // engine/text/jinja_chat_template.h

class ChatTemplate {
 public:
  // The template that `choice` means, the first of: one that the folder has under this name, a
  // built-in one ("chatml", "llama3", ...), a file. "" is the folder's own, where one called
  // "tool_use" takes conversations with tools. `arguments` hold for every conversation; what they
  // say is as good as the template's own text. Throws Error when there is no such template, the
  // folder has none (with a hint naming --chat-template and --raw) or it is no Jinja, when the
  // tokenizer lacks special tokens of a built-in one, and for arguments that it does not mention.
  static ChatTemplate choose(const std::string& choice, const ModelFolder& folder,
                             const Tokenizer& tokenizer,
                             std::vector<TemplateArgument> arguments = {});

  // Tells choices apart by what they mean, not by where it lies: the name, or "sha256:" and the
  // digits for the content of a file. Throws Error when there is no such template.
  static std::string fingerprint(const std::string& choice, const ModelFolder& folder);

  // Of the built-in ones.
  static std::vector<std::string> names();

  // The name that it was chosen by, "jinja" for a file or the folder's own.
  const std::string& name() const { return name_; }

  // Whether the name of a variable or a text in quotes of the template is `word`: what a template
  // does not mention it cannot take into account.
  bool mentions(std::string_view word) const;

  // The conversation as segments, ending where the assistant's answer begins. Throws Error when the
  // template forbids it (a system message where none is supported, roles that do not alternate) or,
  // with line and column, fails; when it does not mention tools, calls or arguments that are there;
  // and with the message's number when one is not UTF-8. While it renders, `progress` is told that
  // nothing of the messages' bytes is tokenised.
  std::vector<Segment> render(std::span<const Message> messages, const ChatInputs& inputs = {},
                              const EncodeProgress& progress = {}) const;

  // render() as tokens.
  std::vector<TokenId> encode(const Tokenizer& tokenizer, std::span<const Message> messages,
                              const ChatInputs& inputs = {},
                              const EncodeProgress& progress = {}) const;

  // The special tokens that end turns in many formats, as far as the template writes them and the
  // tokenizer has them.
  std::vector<TokenId> stop_tokens(const Tokenizer& tokenizer) const;

 private:
  using Jinja = std::shared_ptr<const JinjaChatTemplate>;

  ChatTemplate(std::string name, Jinja jinja, Jinja tools_jinja)
      : name_(std::move(name)), jinja_(std::move(jinja)), tools_jinja_(std::move(tools_jinja)) {}

  const JinjaChatTemplate& template_for(const ChatInputs& inputs) const;

  std::string name_;
  Jinja jinja_;
  Jinja tools_jinja_;  // for conversations with tools; null where it is the same
};

}  // namespace tessera
