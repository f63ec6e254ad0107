// A token as a step draws it, and what is told of its probability.
#pragma once

#include <optional>
#include <vector>

#include "engine/text/token_id.h"

namespace tessera {

// Natural logarithms of probabilities: softmax of the model's logits over all tokens that can be
// drawn, before temperature, penalties and what else of SamplingParams chooses among them.
struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
};

struct TokenLogprobs {
  float logprob = 0.0f;           // of the token that was drawn
  std::vector<TokenLogprob> top;  // the most probable ones, the largest first
};

struct DrawnToken {
  std::optional<TokenId> id;              // nothing where logits were not finite
  std::optional<TokenLogprobs> logprobs;  // where the step was asked for any
};

}  // namespace tessera
