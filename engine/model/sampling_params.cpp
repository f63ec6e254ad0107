#include "engine/model/sampling_params.h"

#include "kernels/tensor/check.h"

namespace tessera {

void validate(const SamplingParams& params) {
  check_limits("temperature", params.temperature, kTemperatureLimits);
  check_limits("top_k", params.top_k, kTopKLimits);
  check_limits("top_p", params.top_p, kTopPLimits);
  check_limits("min_p", params.min_p, kMinPLimits);
  check_limits("repetition_penalty", params.repetition_penalty, kRepetitionPenaltyLimits);
  check_limits("presence_penalty", params.presence_penalty, kOccurrencePenaltyLimits);
  check_limits("frequency_penalty", params.frequency_penalty, kOccurrencePenaltyLimits);
  check_limits("repeat_last_n", params.penalty_window, kPenaltyWindowLimits);
  check_limits("max_tokens", params.max_tokens, kMaxTokensLimits);
  check_limits("min_tokens", params.min_tokens, kMaxTokensLimits);
  CHECK(params.max_tokens == 0 || params.min_tokens <= params.max_tokens, "min_tokens is ",
        params.min_tokens, ", but max_tokens only ", params.max_tokens);
  if (params.top_logprobs) check_limits("top_logprobs", *params.top_logprobs, kTopLogprobsLimits);
  for (const std::string& stop : params.stop) CHECK(!stop.empty(), "a stop string is empty");
}

bool has_penalty(const SamplingParams& params) {
  return params.repetition_penalty != 1.0 || params.frequency_penalty != 0.0 ||
         params.presence_penalty != 0.0;
}

SamplingParams default_sampling(const GenerationConfig& generation) {
  SamplingParams params;
  if (generation.do_sample.value_or(false)) {
    params.temperature = generation.temperature.value_or(1.0);
    params.top_k = generation.top_k.value_or(0);
    params.top_p = generation.top_p.value_or(1.0);
    params.min_p = generation.min_p.value_or(0.0);
  }
  params.repetition_penalty = generation.repetition_penalty.value_or(1.0);
  return params;
}

}  // namespace tessera
