// The messages of a chat, the document that they are about, and the file they can be kept in.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/files/text_input.h"
#include "engine/text/chat_template.h"

namespace tessera {

// The role spelled "system", "user", "assistant" or "tool".
std::optional<Role> role_by_name(std::string_view name);

class Conversation {
 public:
  explicit Conversation(std::vector<Message> messages = {}) : messages_(std::move(messages)) {}

  // Reads {"messages": [{"role": "user", "content": "..."}, ...]}, where user and assistant
  // alternate after a system message or none and answers may have "reasoning_content"; beside the
  // messages there may be a "document". Throws Error naming the file and what is wrong in it.
  static Conversation parse(const std::string& text, const std::string& path);
  // The same from a file, which may also be the list of messages alone.
  static Conversation load(const std::string& path, InvalidUtf8 policy);

  // The same as text, and as a file: an existing one is replaced as a whole or, on an error, not at
  // all. Throws Error for one that is no conversation, which stays.
  std::string text() const;
  void save(const std::string& path) const;

  const std::vector<Message>& messages() const { return messages_; }

  // What the first question is about: it precedes that question, whichever it is, in the same
  // message. "" for none.
  const std::string& document() const { return document_; }
  void set_document(std::string document) { document_ = std::move(document); }

  // What a chat template is given: these messages and then `more`, and before the first question,
  // with an empty line between, the document.
  std::vector<Message> continued(std::span<const Message> more) const;

  void add(Message message) { messages_.push_back(std::move(message)); }

  // Replaces the system message; an empty one removes it.
  void set_system(std::string content);
  // The system message, or "".
  std::string system() const;

  bool has_question() const { return last_question() > 0; }
  // Whether the last message is the user's.
  bool ends_with_question() const {
    return !messages_.empty() && messages_.back().role == Role::kUser;
  }

  // Forgets everything but the system message and the document.
  void clear() { messages_.resize(num_leading_system()); }

  // Takes back the last user message and what followed it. False when there is none.
  bool undo();

  // Takes back the answer to the last user message, if there is one. False without a user message.
  bool drop_answer();

 private:
  size_t num_leading_system() const;
  // The number of messages up to the last one of the user, with it; 0 when there is none.
  size_t last_question() const;

  std::vector<Message> messages_;
  std::string document_;
};

}  // namespace tessera
