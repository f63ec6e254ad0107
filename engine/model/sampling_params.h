// What a caller chooses for an answer: how its tokens are drawn and where it ends. Plain values
// with defaults.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model_loaders/generation_config.h"

namespace tessera {

// What the numbers may be; those that generation_config.json also holds are stated there.
inline constexpr NumberLimits<double> kOccurrencePenaltyLimits = {-2.0, 2.0};
inline constexpr NumberLimits<int64_t> kPenaltyWindowLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<uint64_t> kSeedLimits = {0, UINT64_MAX};
inline constexpr NumberLimits<int64_t> kMaxTokensLimits = {0, int64_t{1} << 30};
inline constexpr NumberLimits<int64_t> kTopLogprobsLimits = {0, 20};

struct SamplingParams {
  double temperature = 0.0;         // 0: greedy
  int64_t top_k = 0;                // 0 or -1: off
  double top_p = 1.0;               // 1: off
  double min_p = 0.0;               // 0: off
  double repetition_penalty = 1.0;  // 1: off; of the prompt's tokens and the answer's
  double presence_penalty = 0.0;    // 0: off; of the answer's tokens, as in OpenAI's interface
  double frequency_penalty = 0.0;   // 0: off; likewise
  int64_t penalty_window = 0;       // last tokens the penalties look at; 0: all
  uint64_t seed = 0;                // same seed, same tokens
  int64_t max_tokens = 0;           // 0: until the context is full
  int64_t min_tokens = 0;           // before which neither the model nor `stop` ends the answer
  std::vector<std::string> stop;    // the text ends before the first of these
  bool ignore_eos = false;          // for benchmarks
  // The answer goes on with the prompt's text, so that a space in front of it belongs to it.
  bool continues_prompt = false;
  // Tell each token's log-probability, and those of so many most probable ones; nothing: neither.
  std::optional<int64_t> top_logprobs = {};
};

// Throws Error naming the field, its value and the allowed range.
void validate(const SamplingParams& params);

// Whether a token's logits depend on the tokens before it otherwise than through the model.
bool has_penalty(const SamplingParams& params);

// SamplingParams as the model's authors suggest in generation_config.json: greedy unless do_sample.
SamplingParams default_sampling(const GenerationConfig& generation);

}  // namespace tessera
