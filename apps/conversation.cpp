#include "apps/conversation.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/atomic_file.h"
#include "apps/text_input.h"
#include "engine/engine.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

Message parse_message(const std::string& path, size_t index, const Json& object) {
  const std::string where = concat(path, ": messages[", index, "]");
  CHECK(object.is_object() && object.contains("role") && object["role"].is_string() &&
            object.contains("content") && object["content"].is_string(),
        where, " must be an object with the strings \"role\" and \"content\"");
  const std::optional<Role> role = role_by_name(object["role"].get<std::string>());
  CHECK(role, where, ".role must be system, user or assistant, got '",
        object["role"].get<std::string>(), "'");
  return {*role, object["content"].get<std::string>()};
}

}  // namespace

std::optional<Role> role_by_name(std::string_view name) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    if (to_string(role) == name) return role;
  }
  return std::nullopt;
}

Conversation Conversation::load(const std::string& path) {
  const Json document =
      Json::parse(read_text(path, InvalidUtf8::kRefuse), nullptr, /*allow_exceptions=*/false);
  CHECK(!document.is_discarded(), path, ": not JSON; expected a file written by /save");
  CHECK(document.is_object() && document.contains("messages") && document["messages"].is_array(),
        path, ": expected an object with the array \"messages\"");
  Conversation conversation;
  for (const Json& object : document["messages"]) {
    conversation.messages_.push_back(parse_message(path, conversation.messages_.size(), object));
  }
  return conversation;
}

void Conversation::save(const std::string& path) const {
  Json messages = Json::array();
  for (const Message& message : messages_) {
    messages.push_back({{"role", to_string(message.role)}, {"content", message.content}});
  }
  const Json document = {{"messages", std::move(messages)}};
  replace_file(path, document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
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
  size_t kept = messages_.size();
  while (kept > 0 && messages_[kept - 1].role != Role::kUser) --kept;
  if (kept == 0) return false;
  messages_.resize(kept);
  return true;
}

size_t Conversation::num_leading_system() const {
  return !messages_.empty() && messages_.front().role == Role::kSystem ? 1 : 0;
}

}  // namespace tessera
