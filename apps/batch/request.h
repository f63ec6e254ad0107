// One line of a batch input file: a request in OpenAI's batch form or in the short form.
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
//    "body": {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}}
//   {"custom_id": "b", "method": "POST", "url": "/v1/completions", "body": {"prompt": [1, 22, 3]}}
//   {"id": "c", "prompt": "Hello", "max_tokens": 64}
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/options/sampling_options.h"
#include "engine/text/message.h"
#include "engine/text/token_id.h"

namespace tessera {

// What a request asks for, by OpenAI's names.
enum class Endpoint : uint8_t {
  kChatCompletions,  // an answer to messages
  kCompletions,      // what follows a text or its tokens
};

// Answers that one request may ask for.
inline constexpr NumberLimits<int64_t> kChoicesLimits = {1, 128};

struct BatchRequest {
  std::string custom_id;
  Endpoint endpoint = Endpoint::kChatCompletions;
  std::vector<Message> messages;                           // of a chat
  ChatInputs inputs;                                       // of a chat
  std::variant<std::string, std::vector<TokenId>> prompt;  // of a completion: text or its tokens
  int64_t num_choices = 1;
  SamplingOptions sampling;
  bool logprobs = false;     // tell log-probabilities of the answer's tokens
  int64_t top_logprobs = 0;  // and those of so many alternatives
};

// Why a line is no request. `message` names the field by its path, e.g. "body.messages[1].role".
struct BatchProblem {
  std::string custom_id;  // "" when it could not be read
  std::string code;       // "invalid_json", "json_limit_exceeded", "invalid_request", ...
  std::string message;
};

// `line` has no line break. Throws Interrupted on Ctrl-C. Values are checked against their types
// and ranges; a field that is not understood is a problem, since ignoring it could change what the
// request means.
std::variant<BatchRequest, BatchProblem> parse_batch_request(std::string_view line);

// The chat that `json` asks for without a name of its own: the body of a line, or a list that is
// its messages alone. Throws Error, which begins with `name`, for what is a problem of a line.
BatchRequest parse_chat(std::string_view json, const std::string& name);

}  // namespace tessera
