#include "apps/batch/body.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <limits>

#include "apps/batch/messages.h"
#include "apps/files/text_input.h"
#include "engine/engine.h"
#include "engine/input_files.h"

namespace tessera {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string parse_stop_string(const OrderedJson& value, const std::string& path) {
  const std::string& stop = string_at(value, path);
  CHECK(!stop.empty(), path, " is empty");
  return stop;
}

std::vector<std::string> parse_stop(const OrderedJson& value, const std::string& path) {
  if (value.is_string()) return {parse_stop_string(value, path)};
  CHECK(value.is_array(), path, " must be a string or an array of strings");
  std::vector<std::string> stops;
  for (size_t index = 0; index < value.size(); ++index) {
    stops.push_back(parse_stop_string(value[index], concat(path, '[', index, ']')));
  }
  return stops;
}

// `Number` is int64_t, uint64_t or double. A negative uint64_t, as OpenAI's and vLLM's seeds may
// be, is its two's complement.
template <typename Number>
Number number_at(const OrderedJson& value, const std::string& path,
                 const NumberLimits<Number>& limits) {
  bool is_number = value.is_number();
  if constexpr (std::integral<Number>) {
    const bool wraps = value.is_number_unsigned() &&
                       value.get<uint64_t>() > uint64_t{std::numeric_limits<Number>::max()};
    is_number = value.is_number_integer() && !wraps;
  }
  CHECK(is_number && limits.allow(value.get<Number>()), path, " must be ", limits.text(), ", got ",
        shown(value));
  return value.get<Number>();
}

bool bool_at(const OrderedJson& value, const std::string& path) {
  CHECK(value.is_boolean(), path, " must be true or false, got ", shown(value));
  return value.get<bool>();
}

// As OpenAI and vLLM have it, an answer of no tokens is no request: who wants no limit gives none.
template <typename Number>
NumberLimits<Number> limits_in_body(const SamplingField& field,
                                    std::optional<Number> SamplingOptions::*member) {
  NumberLimits<Number> limits = limits_of(field, member);
  if constexpr (std::is_same_v<Number, int64_t>) {
    if (member == &SamplingOptions::max_tokens) limits.low = 1;
  }
  return limits;
}

// 2^64 - 1 is not: nlohmann::json takes the two for equal.
bool is_minus_one(const OrderedJson& value) {
  return value.is_number_integer() && !value.is_number_unsigned() && value.get<int64_t>() == -1;
}

// Some fields have two names, such as max_tokens and max_completion_tokens.
void read_sampling_field(const SamplingField& field, const OrderedJson& value,
                         const std::string& path, SamplingOptions& sampling) {
  if (field.minus_one_is_unset && is_minus_one(value)) return;
  const auto read_member = [&](auto member) {
    const auto before = sampling.*member;
    sampling.*member = number_at(value, path, limits_in_body(field, member));
    CHECK(!before || before == sampling.*member, path, " is ", shown(value),
          ", but another name of the same field has ", *before);
  };
  std::visit(read_member, field.member);
}

// Fields of OpenAI's API that change nothing here, or nothing with the given value.
bool is_harmless(std::string_view key, const OrderedJson& value) {
  constexpr std::array<std::string_view, 9> kIgnored = {"model",
                                                        "user",
                                                        "metadata",
                                                        "store",
                                                        "stream_options",
                                                        "service_tier",
                                                        "safety_identifier",
                                                        "prompt_cache_key",
                                                        "prompt_cache_retention"};
  if (std::find(kIgnored.begin(), kIgnored.end(), key) != kIgnored.end()) return true;
  if (value.is_null()) return true;
  return (key == "stream" && value == false) || (key == "echo" && value == false) ||
         (key == "logit_bias" && value.is_object() && value.empty()) ||
         (key == "tool_choice" && (value == "auto" || value == "none")) ||
         (key == "modalities" && value == OrderedJson::array({"text"})) ||
         (key == "best_of" && value == 1) || (key == "parallel_tool_calls" && value == true);
}

// What others compute and this program does not yet: the request is one, only too early.
void refuse_what_is_missing(std::string_view key, const OrderedJson& value,
                            const std::string& path) {
  if (key != "response_format") return;
  CHECK(value.is_object() && value.contains("type"), path, " must be an object with a type, got ",
        shown(value));
  throw Error(concat(path, ": only {\"type\": \"text\"} is supported yet, got the type ",
                     shown(value["type"])));
}

bool is_plain_text_format(std::string_view key, const OrderedJson& value) {
  return key == "response_format" && value.is_object() && value.contains("type") &&
         value["type"] == "text";
}

// What vLLM calls variables of the template that a request sets.
std::vector<TemplateArgument> parse_template_arguments(const OrderedJson& value,
                                                       const std::string& path) {
  CHECK(value.is_object(), path, " must be an object, got ", value.type_name());
  std::vector<TemplateArgument> arguments;
  for (const auto& [name, argument] : value.items()) arguments.push_back({name, argument.dump()});
  return arguments;
}

// Whether the vocabulary has them is known when the model is.
std::vector<TokenId> parse_tokens(const OrderedJson& value, const std::string& path) {
  CHECK(!value.empty(), path, " is empty");
  std::vector<TokenId> tokens;
  tokens.reserve(value.size());
  for (const OrderedJson& token : value) {
    CHECK(token.is_number_unsigned() &&
              token.get<uint64_t>() <= uint64_t{std::numeric_limits<TokenId>::max()},
          path, " must be a text or a list of token ids; [", tokens.size(), "] is ", shown(token));
    tokens.push_back(token.get<TokenId>());
  }
  return tokens;
}

// Of a chat, the one message.
void parse_chat_prompt(const OrderedJson& value, const std::string& path, BatchRequest& request) {
  CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
  request.messages = {{Role::kUser, string_at(value, path)}};
  CHECK(!is_blank(request.messages[0].content), path, " is empty");
}

// The fields that only a chat has. False for others.
bool parse_chat_field(const std::string& key, const OrderedJson& value, const std::string& path,
                      BatchRequest& request) {
  if (key == "messages") {
    CHECK(request.messages.empty(), path, ": give either messages or prompt, not both");
    request.messages = parse_messages(value, path);
  } else if (key == "prompt" && !value.is_null()) {
    parse_chat_prompt(value, path, request);
  } else if (key == "tools") {
    request.inputs.tools = parse_tools(value, path);
  } else if (key == "logprobs" && !value.is_null()) {
    CHECK(value.is_boolean(), path, " of a chat must be true or false, got ", shown(value));
    request.logprobs = value.get<bool>();
  } else if (key == "top_logprobs" && !value.is_null()) {
    request.top_logprobs = number_at(value, path, kTopLogprobsLimits);
  } else if (key == "chat_template_kwargs" && !value.is_null()) {
    request.inputs.arguments = parse_template_arguments(value, path);
  } else {
    return false;
  }
  return true;
}

std::variant<std::string, std::vector<TokenId>> parse_completion_prompt(const OrderedJson& value,
                                                                        const std::string& path) {
  const bool is_list_of_one = value.is_array() && value.size() == 1 && value[0].is_string();
  if (value.is_array() && !is_list_of_one) return parse_tokens(value, path);
  std::string text = string_at(is_list_of_one ? value[0] : value, path);
  CHECK(!text.empty(), path, " is empty");
  return text;
}

// As OpenAI has it, a completion says how many alternatives it wants, a chat whether it wants any
// log-probabilities and how many alternatives.
bool parse_completion_field(const std::string& key, const OrderedJson& value,
                            const std::string& path, BatchRequest& request) {
  CHECK(key != "messages", path, " belongs to /v1/chat/completions");
  if (key == "prompt") {
    request.prompt = parse_completion_prompt(value, path);
  } else if (key == "logprobs" && !value.is_null()) {
    request.logprobs = true;
    request.top_logprobs = number_at(value, path, kTopLogprobsLimits);
  } else {
    return false;
  }
  return true;
}

bool parse_own_field(const std::string& key, const OrderedJson& value, const std::string& path,
                     BatchRequest& request) {
  const bool is_chat = request.endpoint == Endpoint::kChatCompletions;
  return is_chat ? parse_chat_field(key, value, path, request)
                 : parse_completion_field(key, value, path, request);
}

void parse_field(const std::string& key, const OrderedJson& value, const std::string& path,
                 BatchRequest& request) {
  if (parse_own_field(key, value, path, request)) return;
  if (is_harmless(key, value) || is_plain_text_format(key, value)) return;
  if (key == "n") {
    request.num_choices = number_at(value, path, kChoicesLimits);
  } else if (key == "stop") {
    request.sampling.stop = parse_stop(value, path);
  } else if (key == "ignore_eos") {
    request.sampling.ignore_eos = bool_at(value, path);
  } else if (const SamplingField* field = find_sampling_field(key); field != nullptr) {
    read_sampling_field(*field, value, path, request.sampling);
  } else {
    refuse_what_is_missing(key, value, path);
    throw Error(path + " is not supported");
  }
}

bool has_prompt(const BatchRequest& request) {
  if (request.endpoint == Endpoint::kChatCompletions) return !request.messages.empty();
  return std::visit([](const auto& prompt) { return !prompt.empty(); }, request.prompt);
}

// A line in short may have the one message of its chat as a prompt.
const char* missing_prompt(const BatchRequest& request, const std::string& prefix) {
  if (request.endpoint == Endpoint::kCompletions) return "prompt is missing";
  return prefix.empty() ? "messages or prompt is needed" : "messages is missing";
}

}  // namespace

void parse_body(const OrderedJson& body, const std::string& prefix, BatchRequest& request) {
  for (const auto& [key, value] : body.items()) {
    const bool belongs_to_line = prefix.empty() && (key == "custom_id" || key == "id");
    if (!belongs_to_line) parse_field(key, value, prefix + printable(key), request);
  }
  CHECK(has_prompt(request), prefix, missing_prompt(request, prefix));
  const bool has_unwanted_tools = !request.inputs.tools.empty() && body.contains("tool_choice") &&
                                  body["tool_choice"] == "none";
  CHECK(!has_unwanted_tools, prefix,
        "tool_choice is not supported as \"none\" beside tools: leave the tools out");
  CHECK(request.logprobs || request.top_logprobs == 0, prefix,
        "top_logprobs needs logprobs to be true");
  resolve_sampling(request.sampling, {});  // throws when a value is out of its range
}

}  // namespace tessera
