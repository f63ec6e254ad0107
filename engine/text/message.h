// What a chat template is given: a conversation and what goes with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class Role : uint8_t { kSystem, kUser, kAssistant, kTool };

constexpr std::string_view to_string(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
      return "tool";
  }
  return "unknown";
}

// Everything but the role is text of strangers: none of it becomes a special token.
struct Message {
  Role role = Role::kUser;
  std::string content = {};
  // An answer's <think> part without its marks. Templates decide whether they show it again.
  std::string reasoning = {};
  std::string tool_calls = {};    // of an answer: a list in JSON; "" for none
  std::string tool_call_id = {};  // of a tool's result; "" for none
  std::string name = {};          // of who speaks, or of the tool; "" for none
  bool has_content = true;        // false where a request says null, as beside tool calls
};

inline uint64_t content_bytes(std::span<const Message> messages) {
  uint64_t bytes = 0;
  for (const Message& message : messages) bytes += message.content.size();
  return bytes;
}

// A variable of the template's own, such as enable_thinking.
struct TemplateArgument {
  std::string name;
  std::string json;  // its value
};

// What belongs to one conversation beside its messages.
struct ChatInputs {
  std::string tools = {};  // what the model may call: a list in JSON; "" for none
  std::vector<TemplateArgument> arguments = {};
};

}  // namespace tessera
