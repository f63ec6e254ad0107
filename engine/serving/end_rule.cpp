#include "engine/serving/end_rule.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {

bool EndRule::is_end(TokenId token, const SamplingParams& params) const {
  return !params.ignore_eos && std::ranges::find(stop_tokens, token) != stop_tokens.end();
}

std::span<const TokenId> EndRule::barred_tokens(int64_t index, const SamplingParams& params) const {
  if (params.ignore_eos || index >= params.min_tokens) return {};
  return stop_tokens;
}

LengthLimit EndRule::length_limit(int64_t prompt_tokens, const SamplingParams& params) const {
  const int64_t wanted = prompt_tokens + params.max_tokens;
  if (params.max_tokens > 0 && wanted <= context_size) return {wanted, StopReason::kMaxTokens};
  return {context_size, StopReason::kContextFull};
}

std::string ContextDemand::problem() const {
  return concat("prompt ", prompt_tokens, " + reserved ", answer_tokens, " > limit ",
                counted(context_size, "token"));
}

int64_t reserved_tokens(const SamplingParams& params) {
  return std::max<int64_t>(params.max_tokens, 1);
}

}  // namespace tessera
