#include "apps/batch/request.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/files/conversation.h"
#include "apps/files/text_input.h"
#include "apps/options/sampling_json.h"
#include "engine/engine.h"
#include "engine/input_files.h"
#include "engine/text/sha256.h"

namespace tessera {
namespace {

using Json = nlohmann::json;

// A value as messages quote it; what is long or a container is cut or named.
std::string shown(const Json& value) {
  return value.is_structured() ? concat("an ", value.type_name()) : printable(value.dump());
}

const std::string& string_at(const Json& value, const std::string& path) {
  CHECK(value.is_string(), path, " must be a string, got ", value.type_name());
  return value.get_ref<const std::string&>();
}

// "content" as a string, or as OpenAI's list of {"type": "text", "text": ...}.
std::string parse_content(const Json& value, const std::string& path) {
  if (!value.is_array()) return string_at(value, path);
  std::string text;
  for (size_t index = 0; index < value.size(); ++index) {
    const Json& part = value[index];
    const std::string part_path = concat(path, '[', index, ']');
    CHECK(part.is_object() && part.contains("type") && part["type"] == "text" &&
              part.contains("text"),
          part_path, " must be a text part: {\"type\": \"text\", \"text\": ...}");
    text += string_at(part["text"], part_path + ".text");
  }
  return text;
}

Message parse_message(const Json& value, const std::string& path) {
  CHECK(value.is_object(), path, " must be an object, got ", value.type_name());
  Message message;
  bool has_role = false;
  bool has_content = false;
  for (const auto& [key, field] : value.items()) {
    const std::string field_path = path + "." + printable(key);
    if (key == "role") {
      const std::string& name = string_at(field, field_path);
      const std::optional<Role> role = role_by_name(name);
      CHECK(role, field_path, " must be system, user or assistant, got ", shown(field));
      message.role = *role;
      has_role = true;
    } else if (key == "content") {
      message.content = parse_content(field, field_path);
      has_content = true;
    } else {
      throw Error(field_path + " is not supported");
    }
  }
  CHECK(has_role, path, ".role is missing");
  CHECK(has_content, path, ".content is missing");
  return message;
}

std::vector<Message> parse_messages(const Json& value, const std::string& path) {
  CHECK(value.is_array(), path, " must be an array, got ", value.type_name());
  CHECK(!value.empty(), path, " is empty");
  std::vector<Message> messages;
  for (size_t index = 0; index < value.size(); ++index) {
    messages.push_back(parse_message(value[index], concat(path, '[', index, ']')));
  }
  return messages;
}

std::vector<std::string> parse_stop(const Json& value, const std::string& path) {
  if (value.is_string()) return {value.get<std::string>()};
  CHECK(value.is_array(), path, " must be a string or an array of strings");
  std::vector<std::string> stops;
  for (size_t index = 0; index < value.size(); ++index) {
    stops.push_back(string_at(value[index], concat(path, '[', index, ']')));
  }
  return stops;
}

void read_value(const Json& value, const std::string& path, std::optional<double>& out) {
  CHECK(value.is_number(), path, " must be a number, got ", shown(value));
  out = value.get<double>();
}

// `Integer` is int64_t or uint64_t.
template <typename Integer>
void read_value(const Json& value, const std::string& path, std::optional<Integer>& out) {
  CHECK(value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{INT64_MAX}, path,
        " must be a whole number of 0 or more, got ", shown(value));
  out = value.get<Integer>();
}

// Fields of OpenAI's API that change nothing here, or nothing with the given value.
bool is_harmless(std::string_view key, const Json& value) {
  constexpr std::array<std::string_view, 5> kIgnored = {"model", "user", "metadata", "store",
                                                        "stream_options"};
  if (std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end()) return true;
  if (value.is_null()) return true;
  return (key == "n" && value == 1) || (key == "stream" && value == false) ||
         (key == "logprobs" && value == false);
}

void parse_body_field(const std::string& key, const Json& value, const std::string& path,
                      BatchRequest& request) {
  if (key == "messages") {
    CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
    request.messages = parse_messages(value, path);
  } else if (key == "prompt") {
    CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
    request.messages = {{Role::kUser, string_at(value, path)}};
    CHECK(!is_blank(request.messages[0].content), path, " is empty");
  } else if (key == "stop" && !value.is_null()) {
    request.sampling.stop = parse_stop(value, path);
  } else if (const SamplingField* field = find_sampling_field(key);
             field != nullptr && !value.is_null()) {
    std::visit([&](auto member) { read_value(value, path, request.sampling.*member); },
               field->member);
  } else {
    CHECK(is_harmless(key, value), path, " is not supported");
  }
}

void parse_body(const Json& body, const std::string& prefix, BatchRequest& request) {
  for (const auto& [key, value] : body.items()) {
    const bool belongs_to_line = prefix.empty() && (key == "custom_id" || key == "id");
    if (!belongs_to_line) parse_body_field(key, value, prefix + printable(key), request);
  }
  CHECK(!request.messages.empty(), prefix, "messages is missing");
  resolve_sampling(request.sampling, {});  // throws when a value is out of its range
}

void parse_line(const Json& line, BatchRequest& request) {
  CHECK(!request.custom_id.empty(), "custom_id is missing or empty");
  if (!line.contains("body")) {
    parse_body(line, "", request);
    return;
  }
  for (const auto& [key, value] : line.items()) {
    if (key == "url") {
      CHECK(value == "/v1/chat/completions", "url must be \"/v1/chat/completions\", got ",
            shown(value));
    } else if (key == "method") {
      CHECK(value == "POST", "method must be \"POST\", got ", shown(value));
    } else {
      CHECK(key == "custom_id" || key == "body", printable(key), " is not supported");
    }
  }
  CHECK(line["body"].is_object(), "body must be an object, got ", line["body"].type_name());
  parse_body(line["body"], "body.", request);
}

std::string find_custom_id(const Json& line) {
  for (const char* key : {"custom_id", "id"}) {
    if (line.contains(key)) return string_at(line[key], key);
  }
  return "";
}

Json messages_json(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) {
    list.push_back({{"role", to_string(message.role)}, {"content", message.content}});
  }
  return list;
}

}  // namespace

std::string request_id(const BatchRequest& request) {
  constexpr size_t kDigits = 16;
  const Json content = {{"custom_id", request.custom_id},
                        {"messages", messages_json(request.messages)},
                        {"sampling", sampling_json(request.sampling)}};
  return "req_" + sha256(content.dump()).substr(0, kDigits);
}

BatchRequest parse_chat(std::string_view json, const std::string& name) {
  Json body = parse_strict_json(json, {.path = name});
  if (body.is_array()) body = Json{{"messages", std::move(body)}};
  CHECK(body.is_object(), name, ": expected a list of messages, or an object that has one, got ",
        body.type_name());
  BatchRequest request;
  parse_body(body, name + ": ", request);
  return request;
}

std::variant<BatchRequest, BatchProblem> parse_batch_request(std::string_view line) {
  BatchRequest request;
  std::string code = "invalid_json";
  try {
    const Json parsed = parse_strict_json(line, {});
    code = "invalid_request";
    CHECK(parsed.is_object(), "a request must be a JSON object, got ", parsed.type_name());
    request.custom_id = find_custom_id(parsed);
    parse_line(parsed, request);
    return request;
  } catch (const Error& error) {
    return BatchProblem{std::move(request.custom_id), std::move(code), error.what()};
  }
}

}  // namespace tessera
