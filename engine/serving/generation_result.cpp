#include "engine/serving/generation_result.h"

namespace tessera {

std::string_view finish_reason(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfSequence:
    case StopReason::kStopString:
      return "stop";
    case StopReason::kMaxTokens:
    case StopReason::kContextFull:
      return "length";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kNonFiniteLogits:
      return "error";
  }
  return "unknown";
}

double GenerationResult::prefill_tokens_per_second() const {
  const auto computed = static_cast<double>(computed_prompt_tokens);
  return prefill_seconds > 0.0 ? computed / prefill_seconds : 0.0;
}

double GenerationResult::decode_tokens_per_second() const {
  const auto count = static_cast<double>(tokens.size());
  return tokens.size() > 1 && decode_seconds > 0.0 ? (count - 1.0) / decode_seconds : 0.0;
}

}  // namespace tessera
