// One line of a batch input file: a request in OpenAI's batch form or in the short form.
//
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions",
//    "body": {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 64}}
//   {"id": "a", "prompt": "Hello", "max_tokens": 64}
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/options/sampling_options.h"
#include "engine/text/message.h"

namespace tessera {

struct BatchRequest {
  std::string custom_id;
  std::vector<Message> messages;
  ChatInputs inputs;
  SamplingOptions sampling;
};

// Why a line is no request. `message` names the field by its path, e.g. "body.messages[1].role".
struct BatchProblem {
  std::string custom_id;  // "" when it could not be read
  std::string code;       // "invalid_json", "invalid_request", ...
  std::string message;
};

// `line` has no line break. Values are checked against their types and ranges; a field that is not
// understood is a problem, since ignoring it could change what the request means.
std::variant<BatchRequest, BatchProblem> parse_batch_request(std::string_view line);

// The request that `json` asks for without a name of its own: the body of a line, or a list that is
// its messages alone. Throws Error, which begins with `name`, for what is a problem of a line.
BatchRequest parse_chat(std::string_view json, const std::string& name);

// "req_" and 16 hexadecimal digits of the SHA-256 of all that the request says about its answer: a
// request that is edited between two runs has another one.
std::string request_id(const BatchRequest& request);

}  // namespace tessera
