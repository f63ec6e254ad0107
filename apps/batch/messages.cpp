#include "apps/batch/messages.h"

#include <optional>

#include "apps/files/conversation.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

// "content" as a string, or as OpenAI's list of {"type": "text", "text": ...}.
std::string parse_content(const OrderedJson& value, const std::string& path) {
  if (!value.is_array()) return string_at(value, path);
  std::string text;
  for (size_t index = 0; index < value.size(); ++index) {
    const OrderedJson& part = value[index];
    const std::string part_path = concat(path, '[', index, ']');
    CHECK(part.is_object() && part.contains("type") && part["type"] == "text" &&
              part.contains("text"),
          part_path, " must be a text part: {\"type\": \"text\", \"text\": ...}");
    text += string_at(part["text"], part_path + ".text");
  }
  return text;
}

Role parse_role(const OrderedJson& value, const std::string& path) {
  const std::string& name = string_at(value, path);
  if (name == "developer") return Role::kSystem;  // what OpenAI calls it since 2024
  const std::optional<Role> role = role_by_name(name);
  CHECK(role, path, " must be system, user, assistant or tool, got ", shown(value));
  return *role;
}

// {"type": "function", "function": {"name": ..., "arguments": ...}, ...}
OrderedJson parse_tool_call(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_object() && value.contains("function") && value["function"].is_object(), path,
        " must be a call: {\"type\": \"function\", \"function\": {\"name\": ..., ",
        "\"arguments\": ...}}");
  OrderedJson call = value;
  OrderedJson& function = call["function"];
  CHECK(function.contains("name") && function["name"].is_string(), path,
        ".function.name must be a string");
  if (function.contains("arguments") && function["arguments"].is_string()) {
    const std::string spelled = function["arguments"].get<std::string>();
    function["arguments"] = parse_ordered_json(spelled, {path + ".function.arguments"});
  }
  return call;
}

std::string parse_tool_calls(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_array(), path, " must be an array, got ", value.type_name());
  OrderedJson calls = OrderedJson::array();
  for (size_t index = 0; index < value.size(); ++index) {
    calls.push_back(parse_tool_call(value[index], concat(path, '[', index, ']')));
  }
  return calls.empty() ? "" : calls.dump();
}

// What says no more than if it were not there: OpenAI's answers have empty annotations.
bool says_nothing(const std::string& key, const OrderedJson& value) {
  return value.is_null() || (key == "annotations" && value.empty());
}

void parse_field(const std::string& key, const OrderedJson& value, const std::string& path,
                 Message& message) {
  if (key == "role") {
    message.role = parse_role(value, path);
  } else if (key == "content" && !value.is_null()) {
    message.content = parse_content(value, path);
    message.has_content = true;
  } else if (says_nothing(key, value)) {
  } else if (key == "reasoning_content") {
    message.reasoning = string_at(value, path);
  } else if (key == "tool_calls") {
    message.tool_calls = parse_tool_calls(value, path);
  } else if (key == "tool_call_id") {
    message.tool_call_id = string_at(value, path);
  } else if (key == "name") {
    message.name = string_at(value, path);
  } else {
    throw Error(path + " is not supported");
  }
}

void require_role(bool is_there, Role wanted, const Message& message, const std::string& path) {
  CHECK(!is_there || message.role == wanted, path, " belongs to the role ", to_string(wanted),
        ", not to ", to_string(message.role));
}

Message parse_message(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_object(), path, " must be an object, got ", value.type_name());
  Message message;
  message.has_content = false;
  for (const auto& [key, field] : value.items()) {
    parse_field(key, field, path + "." + printable(key), message);
  }
  CHECK(value.contains("role"), path, ".role is missing");
  require_role(!message.tool_calls.empty(), Role::kAssistant, message, path + ".tool_calls");
  require_role(!message.reasoning.empty(), Role::kAssistant, message, path + ".reasoning_content");
  require_role(!message.tool_call_id.empty(), Role::kTool, message, path + ".tool_call_id");
  if (message.has_content || !message.tool_calls.empty()) return message;
  CHECK(value.contains("content"), path, ".content is missing");
  throw Error(path + ".content must be a string, got null");
}

}  // namespace

std::string shown(const OrderedJson& value) {
  return value.is_structured() ? concat("an ", value.type_name()) : printable(value.dump());
}

const std::string& string_at(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_string(), path, " must be a string, got ", value.type_name());
  return value.get_ref<const std::string&>();
}

std::vector<Message> parse_messages(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_array(), path, " must be an array, got ", value.type_name());
  CHECK(!value.empty(), path, " is empty");
  std::vector<Message> messages;
  for (size_t index = 0; index < value.size(); ++index) {
    messages.push_back(parse_message(value[index], concat(path, '[', index, ']')));
  }
  return messages;
}

std::string parse_tools(const OrderedJson& value, const std::string& path) {
  if (value.is_null()) return "";
  CHECK(value.is_array(), path, " must be an array, got ", value.type_name());
  for (size_t index = 0; index < value.size(); ++index) {
    CHECK(value[index].is_object(), path, '[', index, "] must be an object, got ",
          value[index].type_name());
  }
  return value.empty() ? "" : value.dump();
}

}  // namespace tessera
