// What a generation gives: its text, its tokens, why it ended and how long it took.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/drawn_token.h"
#include "engine/text/token_id.h"

namespace tessera {

enum class StopReason : uint8_t {
  kEndOfSequence,    // the model ended its answer
  kStopString,       // one of SamplingParams::stop
  kMaxTokens,        // SamplingParams::max_tokens
  kContextFull,      // no room for another token
  kCancelled,        // by whoever asked for it, or because a callback or the device failed
  kNonFiniteLogits,  // the model produced NaN or infinity
};

// "stop", "stop", "length", "length", "cancelled", "error": OpenAI's words where they exist.
std::string_view finish_reason(StopReason reason);

struct GenerationResult {
  StopReason stop_reason = StopReason::kEndOfSequence;
  std::string text;
  std::vector<TokenId> tokens;          // generated, without the one that ended the answer
  std::vector<TokenLogprobs> logprobs;  // of each of these, where SamplingParams ask for them
  std::string error;                    // for kNonFiniteLogits: what and where
  bool continues_text = false;          // of the prompt: SamplingParams::continues_prompt
  int64_t prompt_tokens = 0;
  int64_t cached_prompt_tokens = 0;    // of these, not computed for this answer
  int64_t computed_prompt_tokens = 0;  // and computed now
  int64_t drafted_tokens = 0;          // computed before they were known to be the next ones
  int64_t accepted_tokens = 0;         // of these, those that were
  double prefill_seconds = 0.0;        // from start to the first token, or without one to the last
                                       // step of the prompt
  double decode_seconds = 0.0;         // from the first token to the last
  double longest_wait_seconds = 0.0;   // of these, from one token to the next

  // False when cancelling came first.
  bool is_prompt_computed() const {
    return cached_prompt_tokens + computed_prompt_tokens == prompt_tokens;
  }
  double prefill_tokens_per_second() const;  // of the prompt tokens that were computed
  double decode_tokens_per_second() const;   // (n - 1) / decode_seconds; 0 below two tokens
};

}  // namespace tessera
