// Where an answer ends, but for its stop strings, which StopMatcher finds in the text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/model/sampling_params.h"
#include "engine/serving/generation_result.h"
#include "engine/text/token_id.h"

namespace tessera {

// The length at which an answer ends, whatever its tokens are.
struct LengthLimit {
  int64_t num_tokens = 0;  // of prompt and answer together
  StopReason reason = StopReason::kContextFull;
};

// What holds for all answers of an engine.
struct EndRule {
  std::vector<TokenId> stop_tokens;
  int64_t context_size = 0;  // tokens that prompt and answer share

  // Whether the token ends an answer, of which it is then no part.
  bool is_end(TokenId token, const SamplingParams& params) const;

  // The end tokens where the answer's token number `index`, from 0, comes before its min_tokens:
  // they are not drawn then.
  std::span<const TokenId> barred_tokens(int64_t index, const SamplingParams& params) const;

  LengthLimit length_limit(int64_t prompt_tokens, const SamplingParams& params) const;
};

// What a prompt and its answer ask of the context, in tokens.
struct ContextDemand {
  int64_t prompt_tokens = 0;
  int64_t answer_tokens = 0;  // reserved
  int64_t context_size = 0;

  bool fits() const { return prompt_tokens + answer_tokens <= context_size; }
  // "prompt 5 + reserved 3 > limit 7 tokens", for a demand that does not fit.
  std::string problem() const;
};

// The answer tokens for which a prompt has to leave room: max_tokens, at least 1.
int64_t reserved_tokens(const SamplingParams& params);

}  // namespace tessera
