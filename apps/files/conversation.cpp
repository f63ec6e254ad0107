#include "apps/files/conversation.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "apps/files/atomic_file.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

Message parse_message(const JsonObject& object) {
  const std::string name = object.get_string("role");
  const std::optional<Role> role = role_by_name(name);
  CHECK(role, object.path(), ": ", object.field("role"),
        " must be system, user or assistant, got '", printable(name), "'");
  return {.role = *role,
          .content = object.get_string("content"),
          .reasoning = object.find_string("reasoning_content").value_or("")};
}

// Templates have no place for anything but question, answer, question, ...
void check_turns(const std::string& path, const std::vector<Message>& messages) {
  const size_t first = !messages.empty() && messages[0].role == Role::kSystem ? 1 : 0;
  for (size_t index = first; index < messages.size(); ++index) {
    const Role expected = (index - first) % 2 == 0 ? Role::kUser : Role::kAssistant;
    CHECK(messages[index].role == expected, path, ": message ", index + 1, " has the role ",
          to_string(messages[index].role), ", expected ", to_string(expected),
          index == 0 ? " or system first" : concat(" after ", to_string(messages[index - 1].role)));
  }
}

// A name typed by mistake, or completed too far, must not cost a person another file.
void require_conversation(const std::string& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return;
  try {
    Conversation::parse(read_text(path, InvalidUtf8::kRefuse), path);
  } catch (const Error&) {
    throw Error(path + ": is no saved conversation, and stays as it is", "choose another name");
  }
}

}  // namespace

std::optional<Role> role_by_name(std::string_view name) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant, Role::kTool}) {
    if (to_string(role) == name) return role;
  }
  return std::nullopt;
}

Conversation Conversation::load(const std::string& path, InvalidUtf8 policy) {
  const std::string text = read_text(path, policy);
  if (!trimmed(text).starts_with('[')) return parse(text, path);
  const OrderedJson list = parse_ordered_json(text, {path});  // its errors tell bytes of the file
  CHECK(!list.empty(), path, ": is an empty list of messages");
  return parse(concat("{\"messages\":", text, '}'), path);
}

Conversation Conversation::parse(const std::string& text, const std::string& path) {
  const JsonObject saved = JsonObject::parse(text, path);
  const auto objects = saved.find_objects("messages");
  CHECK(objects, path, ": messages is missing; expected a file written by /save");
  Conversation conversation;
  for (const JsonObject& object : *objects) conversation.messages_.push_back(parse_message(object));
  check_turns(path, conversation.messages_);
  conversation.document_ = saved.find_string("document").value_or("");
  return conversation;
}

std::string Conversation::text() const {
  OrderedJson messages = OrderedJson::array();
  for (const Message& message : messages_) {
    messages.push_back({{"role", to_string(message.role)}, {"content", message.content}});
    if (!message.reasoning.empty()) messages.back()["reasoning_content"] = message.reasoning;
  }
  OrderedJson saved = {{"messages", std::move(messages)}};
  if (!document_.empty()) saved["document"] = document_;
  return saved.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

void Conversation::save(const std::string& path) const {
  require_conversation(path);
  replace_file(path, text());
}

std::vector<Message> Conversation::continued(std::span<const Message> more) const {
  std::vector<Message> messages = messages_;
  messages.insert(messages.end(), more.begin(), more.end());
  if (document_.empty()) return messages;
  const auto first = std::ranges::find(messages, Role::kUser, &Message::role);
  if (first != messages.end()) first->content = document_ + "\n\n" + first->content;
  return messages;
}

void Conversation::set_system(std::string content) {
  messages_.erase(messages_.begin(),
                  messages_.begin() + static_cast<std::ptrdiff_t>(num_leading_system()));
  if (!content.empty()) messages_.insert(messages_.begin(), {Role::kSystem, std::move(content)});
}

std::string Conversation::system() const {
  return num_leading_system() > 0 ? messages_.front().content : "";
}

bool Conversation::undo() {
  if (!drop_answer()) return false;
  messages_.pop_back();
  return true;
}

bool Conversation::drop_answer() {
  if (!has_question()) return false;
  messages_.resize(last_question());
  return true;
}

size_t Conversation::last_question() const {
  size_t count = messages_.size();
  while (count > 0 && messages_[count - 1].role != Role::kUser) --count;
  return count;
}

size_t Conversation::num_leading_system() const {
  return !messages_.empty() && messages_.front().role == Role::kSystem ? 1 : 0;
}

}  // namespace tessera
