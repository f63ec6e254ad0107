#include "apps/batch/request.h"

#include <nlohmann/json.hpp>

#include "apps/batch/body.h"
#include "apps/batch/messages.h"
#include "apps/process/signals.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

Endpoint parse_url(const OrderedJson& url) {
  if (url == "/v1/chat/completions") return Endpoint::kChatCompletions;
  if (url == "/v1/completions") return Endpoint::kCompletions;
  throw Error(
      concat("url must be \"/v1/chat/completions\" or \"/v1/completions\", got ", shown(url)));
}

void parse_line(const OrderedJson& line, BatchRequest& request) {
  CHECK(!request.custom_id.empty(), "custom_id is missing or empty");
  if (!line.contains("body")) {
    CHECK(!line.contains("url") && !line.contains("method"), "body is missing");
    parse_body(line, "", request);
    return;
  }
  for (const auto& [key, value] : line.items()) {
    if (key == "url") {
      request.endpoint = parse_url(value);
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

}  // namespace

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
    const OrderedJson parsed = parse_ordered_json(line, {}, {.pause = throw_if_interrupted});
    code = "invalid_request";
    CHECK(parsed.is_object(), "a request must be a JSON object, got ", parsed.type_name());
    request.custom_id = find_custom_id(parsed);
    parse_line(parsed, request);
    return request;
  } catch (const JsonLimitError& error) {
    return BatchProblem{std::move(request.custom_id), "json_limit_exceeded", error.what()};
  } catch (const Error& error) {
    return BatchProblem{std::move(request.custom_id), std::move(code), error.what()};
  }
}

}  // namespace tessera
