// From a request to what the engine is given.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "apps/answer/overflow.h"
#include "apps/batch/input.h"
#include "apps/batch/request.h"
#include "apps/files/conversation.h"
#include "apps/options/overflow_option.h"
#include "apps/options/sampling_options.h"
#include "engine/engine.h"

namespace tessera {

// What holds for every request.
struct BatchDefaults {
  std::string model_name;    // to report
  Conversation opening;      // what precedes chats without a system message
  std::string kv_path;       // where it comes from, if every chat has to begin with it
  SamplingOptions sampling;  // for what a request does not set
  OnOverflow on_overflow = OnOverflow::kError;
};

struct PreparedRequest {
  BatchItem item;
  std::string custom_id;
  Endpoint endpoint = Endpoint::kChatCompletions;
  std::vector<TokenId> prompt;
  LeftOut left_out;        // of the prompt as it was asked for
  ThinkingStart thinking;  // of a chat
  int64_t num_choices = 1;
  SamplingParams params;
  bool draws_with_run_seed = false;  // it is sampled, and has no seed of its own

  // Those of one choice: each has a seed of its own, the first the request's.
  SamplingParams params_of(int64_t choice) const;
};

// Renders and tokenises. A prompt that the engine cannot answer is a problem. Throws what
// `progress` throws.
std::variant<PreparedRequest, BatchProblem> prepare(const Engine& engine, const BatchItem& item,
                                                    BatchRequest request,
                                                    const BatchDefaults& defaults,
                                                    const EncodeProgress& progress);

}  // namespace tessera
