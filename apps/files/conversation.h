// The messages of a chat, and the file they can be kept in.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"

namespace tessera {

// The role spelled "system", "user", "assistant" or "tool".
std::optional<Role> role_by_name(std::string_view name);

class Conversation {
 public:
  explicit Conversation(std::vector<Message> messages = {}) : messages_(std::move(messages)) {}

  // Reads {"messages": [{"role": "user", "content": "..."}, ...]}, where user and assistant
  // alternate after a system message or none and answers may have "reasoning_content". Throws Error
  // naming the file and what is wrong in it.
  static Conversation load(const std::string& path);

  // Writes the same. An existing file is replaced as a whole or, on an error, not at all.
  void save(const std::string& path) const;

  const std::vector<Message>& messages() const { return messages_; }

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

  // Forgets everything but the system message.
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
};

}  // namespace tessera
