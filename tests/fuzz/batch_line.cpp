// One line of a batch input file.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "apps/batch/request.h"
#include "apps/files/conversation.h"
#include "engine/input_files.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/oracle.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;

// With arguments spelled in strings, which may have been there so: they are nested less deeply
// then.
Json calls_of(const std::string& tool_calls) {
  Json calls = parse_ordered_json(tool_calls, {});
  for (Json& call : calls) {
    Json& function = call["function"];
    if (function.contains("arguments")) function["arguments"] = function["arguments"].dump();
  }
  return calls;
}

Json json_of(const Message& message) {
  Json json = {{"role", to_string(message.role)}, {"content", nullptr}};
  if (message.has_content) json["content"] = message.content;
  if (!message.reasoning.empty()) json["reasoning_content"] = message.reasoning;
  if (!message.tool_calls.empty()) json["tool_calls"] = calls_of(message.tool_calls);
  if (!message.tool_call_id.empty()) json["tool_call_id"] = message.tool_call_id;
  if (!message.name.empty()) json["name"] = message.name;
  return json;
}

// Without what belongs to messages or a prompt.
void add_shared_fields(const BatchRequest& request, Json& body) {
  for (const SamplingField& field : sampling_fields()) {
    std::visit(
        [&](auto member) {
          if (const auto& value = request.sampling.*member) body[std::string(field.name)] = *value;
        },
        field.member);
  }
  if (request.sampling.stop) body["stop"] = *request.sampling.stop;
  if (request.sampling.ignore_eos) body["ignore_eos"] = *request.sampling.ignore_eos;
  body["n"] = request.num_choices;
}

std::string completion_json_of(const BatchRequest& request) {
  Json body;
  std::visit([&](const auto& prompt) { body["prompt"] = prompt; }, request.prompt);
  add_shared_fields(request, body);
  const Json line = {
      {"custom_id", request.custom_id}, {"url", "/v1/completions"}, {"body", std::move(body)}};
  return line.dump();
}

// A chat in the short form, which nests less deeply, whatever form it was read in.
std::string json_of(const BatchRequest& request) {
  if (request.endpoint == Endpoint::kCompletions) return completion_json_of(request);
  Json body = {{"custom_id", request.custom_id}, {"messages", Json::array()}};
  for (const Message& message : request.messages) {
    body["messages"].push_back(json_of(message));
  }
  if (!request.inputs.tools.empty()) body["tools"] = parse_ordered_json(request.inputs.tools, {});
  for (const TemplateArgument& argument : request.inputs.arguments) {
    body["chat_template_kwargs"][argument.name] = parse_ordered_json(argument.json, {});
  }
  add_shared_fields(request, body);
  return body.dump();
}

// Throws it, so that it is a refusal like those of other targets.
[[noreturn]] void refuse(const BatchProblem& problem) {
  require(problem.code == "invalid_json" || problem.code == "json_limit_exceeded" ||
              problem.code == "invalid_request",
          "a problem has one of the documented codes");
  require(!problem.message.empty(), "a problem says what it is");
  require_utf8(problem.custom_id, "custom_id");
  throw Error(problem.message);
}

void check_request(const BatchRequest& request) {
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  const bool has_prompt =
      std::visit([](const auto& prompt) { return !prompt.empty(); }, request.prompt);
  require(
      !request.custom_id.empty() && is_chat == !request.messages.empty() && is_chat != has_prompt,
      "a request is complete");
  require(kChoicesLimits.allow(request.num_choices), "a request asks for some answers");
  require_utf8(request.custom_id, "custom_id");
  for (const Message& message : request.messages) {
    for (const std::string* const text : {&message.content, &message.reasoning, &message.tool_calls,
                                          &message.tool_call_id, &message.name}) {
      require_utf8(*text, "a message");
    }
  }
  const std::string json = json_of(request);
  const auto again = parse_batch_request(json);
  const auto* const problem = std::get_if<BatchProblem>(&again);
  require(problem == nullptr,
          "a request written again is one: " + (problem ? problem->message : ""));
  require(json_of(std::get<BatchRequest>(again)) == json, "a request written again reads the same");
}

void read(std::string_view bytes) {
  const auto line = bytes.substr(0, bytes.find('\n'));
  const auto parsed = parse_batch_request(line);
  if (const auto* const problem = std::get_if<BatchProblem>(&parsed)) refuse(*problem);
  check_request(std::get<BatchRequest>(parsed));
}

std::vector<std::string> seeds() {
  return {
      R"({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "m",)"
      R"( "messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],)"
      R"( "max_tokens": 64, "temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ["x", "y"]}})",
      R"({"id": "a", "prompt": "Hello", "max_completion_tokens": 64, "n": 1, "stream": false})",
      R"({"id": "b", "messages": [{"role": "user", "content": [{"type": "text", "text": "é"}]}]})",
      R"({"id": "c", "prompt": "x", "temperature": 1e999})",
      R"({"id": "d", "prompt": "x", "metadata": {"a": -1e400}})",
      R"({"id": "e", "messages": [{"role": "user", "content": [{"type": 5, "text": "x"}]}]})",
      R"({"id": "f", "prompt": "x", "seed": -1, "top_k": 1.5, "min_p": "0"})",
      R"({"id": "g", "prompt": "x", "id": "h"})",
      R"({"id": "\ud800", "prompt": "x"})",
      R"({"id": "i", "prompt": "x", "\u001b[2J\u202e": 1})",
      R"({"id": "j", "messages": [{"role": "\u009b", "content": "x"}]})",
      R"({"id": "k", "body": {"prompt": "x"}, "method": "G\u0007T", "url": null})",
      R"({"id": 1, "custom_id": null, "prompt": "\u0000"})",
      R"({"id": "l", "prompt": "x", "stop": "", "repeat-last-n": 0, "logprobs": false})",
      R"({"id": "m", "tools": [{"type": "function", "function": {"name": "f", "a": {}}}],)"
      R"( "chat_template_kwargs": {"enable_thinking": false, "x": [1, "y"]}, "messages": [)"
      R"({"role": "user", "content": "U"}, {"role": "assistant", "content": null,)"
      R"( "reasoning_content": "R", "tool_calls": [{"id": "c", "type": "function",)"
      R"( "function": {"name": "f", "arguments": "{\"b\": 1, \"a\": 2}"}}]},)"
      R"( {"role": "tool", "tool_call_id": "c", "name": "f", "content": "4"}]})",
      R"({"id": "n", "prompt": "x", "tools": [1], "tool_choice": "auto"})",
      R"({"custom_id": "o", "url": "/v1/completions", "body": {"prompt": [1, 22, 333], "n": 2,)"
      R"( "min_tokens": 3, "ignore_eos": true, "response_format": {"type": "text"}}})",
      R"({"custom_id": "p", "url": "/v1/completions", "body": {"prompt": "x", "echo": false}})",
      R"([[[[]]]])",
      "{\"id\": \"\xff\"}",
  };
}

std::vector<std::string> dictionary() {
  std::vector<std::string> words = {
      "null",    "true",    "1e999", "-1e400", "9223372036854775808", "\\u001b", "\\ud800",
      "\\u0000", "\\u202e", "[",     "{"};
  for (const char* const key : {"custom_id",
                                "id",
                                "method",
                                "POST",
                                "url",
                                "/v1/chat/completions",
                                "/v1/completions",
                                "body",
                                "messages",
                                "role",
                                "content",
                                "system",
                                "user",
                                "assistant",
                                "type",
                                "text",
                                "prompt",
                                "stop",
                                "metadata",
                                "model",
                                "n",
                                "stream",
                                "stream_options",
                                "logprobs",
                                "ignore_eos",
                                "response_format",
                                "tools",
                                "tool_calls",
                                "function",
                                "arguments",
                                "tool_call_id",
                                "name",
                                "tool",
                                "reasoning_content",
                                "chat_template_kwargs"}) {
    words.push_back(concat('"', key, '"'));
  }
  for (const SamplingField& field : sampling_fields())
    words.push_back(concat('"', field.name, '"'));
  return words;
}

}  // namespace

FuzzTarget batch_line_target() { return {"batch_line", read, seeds(), dictionary()}; }

}  // namespace tessera
