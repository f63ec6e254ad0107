#include "apps/batch/request.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/batch/messages.h"
#include "apps/files/text_input.h"
#include "apps/options/sampling_json.h"
#include "engine/engine.h"
#include "engine/input_files.h"
#include "engine/text/sha256.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::vector<std::string> parse_stop(const OrderedJson& value, const std::string& path) {
  if (value.is_string()) return {value.get<std::string>()};
  CHECK(value.is_array(), path, " must be a string or an array of strings");
  std::vector<std::string> stops;
  for (size_t index = 0; index < value.size(); ++index) {
    stops.push_back(string_at(value[index], concat(path, '[', index, ']')));
  }
  return stops;
}

void read_value(const OrderedJson& value, const std::string& path, std::optional<double>& out) {
  CHECK(value.is_number(), path, " must be a number, got ", shown(value));
  out = value.get<double>();
}

// `Integer` is int64_t or uint64_t.
template <typename Integer>
void read_value(const OrderedJson& value, const std::string& path, std::optional<Integer>& out) {
  CHECK(value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{INT64_MAX}, path,
        " must be a whole number of 0 or more, got ", shown(value));
  out = value.get<Integer>();
}

// Fields of OpenAI's API that change nothing here, or nothing with the given value.
bool is_harmless(std::string_view key, const OrderedJson& value) {
  constexpr std::array<std::string_view, 5> kIgnored = {"model", "user", "metadata", "store",
                                                        "stream_options"};
  if (std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end()) return true;
  if (value.is_null()) return true;
  return (key == "n" && value == 1) || (key == "stream" && value == false) ||
         (key == "logprobs" && value == false) || (key == "tool_choice" && value == "auto") ||
         (key == "parallel_tool_calls" && value == true);
}

// What vLLM calls variables of the template that a request sets.
std::vector<TemplateArgument> parse_template_arguments(const OrderedJson& value,
                                                       const std::string& path) {
  CHECK(value.is_object(), path, " must be an object, got ", value.type_name());
  std::vector<TemplateArgument> arguments;
  for (const auto& [name, argument] : value.items()) arguments.push_back({name, argument.dump()});
  return arguments;
}

void parse_body_field(const std::string& key, const OrderedJson& value, const std::string& path,
                      BatchRequest& request) {
  if (key == "messages") {
    CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
    request.messages = parse_messages(value, path);
  } else if (key == "prompt" && !value.is_null()) {
    CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
    request.messages = {{Role::kUser, string_at(value, path)}};
    CHECK(!is_blank(request.messages[0].content), path, " is empty");
  } else if (key == "tools") {
    request.inputs.tools = parse_tools(value, path);
  } else if (key == "chat_template_kwargs" && !value.is_null()) {
    request.inputs.arguments = parse_template_arguments(value, path);
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

void parse_body(const OrderedJson& body, const std::string& prefix, BatchRequest& request) {
  for (const auto& [key, value] : body.items()) {
    const bool belongs_to_line = prefix.empty() && (key == "custom_id" || key == "id");
    if (!belongs_to_line) parse_body_field(key, value, prefix + printable(key), request);
  }
  CHECK(!request.messages.empty(), prefix, "messages is missing");
  resolve_sampling(request.sampling, {});  // throws when a value is out of its range
}

void parse_line(const OrderedJson& line, BatchRequest& request) {
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

std::string find_custom_id(const OrderedJson& line) {
  for (const char* key : {"custom_id", "id"}) {
    if (line.contains(key)) return string_at(line[key], key);
  }
  return "";
}

// With what a message has: JSON in it as text.
nlohmann::json message_json(const Message& message) {
  nlohmann::json object = {{"role", to_string(message.role)}, {"content", nullptr}};
  if (message.has_content) object["content"] = message.content;
  const std::pair<const char*, const std::string*> texts[] = {
      {"reasoning_content", &message.reasoning},
      {"tool_calls", &message.tool_calls},
      {"tool_call_id", &message.tool_call_id},
      {"name", &message.name}};
  for (const auto& [key, text] : texts) {
    if (!text->empty()) object[key] = *text;
  }
  return object;
}

}  // namespace

std::string request_id(const BatchRequest& request) {
  constexpr size_t kDigits = 16;
  nlohmann::json content = {{"custom_id", request.custom_id},
                            {"messages", nlohmann::json::array()},
                            {"sampling", sampling_json(request.sampling)}};
  for (const Message& message : request.messages) {
    content["messages"].push_back(message_json(message));
  }
  if (!request.inputs.tools.empty()) content["tools"] = request.inputs.tools;
  for (const auto& [name, json] : request.inputs.arguments) {
    content["chat_template_kwargs"][name] = json;
  }
  return "req_" + sha256(content.dump()).substr(0, kDigits);
}

BatchRequest parse_chat(std::string_view json, const std::string& name) {
  OrderedJson body = parse_ordered_json(json, {.path = name});
  if (body.is_array()) body = OrderedJson{{"messages", std::move(body)}};
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
    const OrderedJson parsed = parse_ordered_json(line, {});
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
