#include "engine/serving/generation.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

double seconds_between(Generation::Clock::time_point begin, Generation::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Generation::Generation(const Tokenizer& tokenizer, const EndRule& end_rule,
                       const PromptSize& prompt, const SamplingParams& params,
                       const GenerationCallbacks& callbacks)
    : end_rule_(end_rule),
      params_(params),
      callbacks_(callbacks),
      length_limit_(end_rule.length_limit(prompt.num_tokens, params)),
      text_stream_(tokenizer, /*is_first=*/!(params.continues_prompt && prompt.has_text)),
      stop_matcher_(params.stop) {
  result_.prompt_tokens = prompt.num_tokens;
  result_.cached_prompt_tokens = prompt.num_cached;
  result_.continues_text = params.continues_prompt && prompt.has_text;
}

bool Generation::is_cancelled() {
  is_cancelled_ = is_cancelled_ || (callbacks_.is_cancelled && callbacks_.is_cancelled());
  return is_cancelled_;
}

void Generation::begin_computing(int64_t num_cached) {
  if (!result_.tokens.empty()) return;
  result_.cached_prompt_tokens = num_cached;
  result_.computed_prompt_tokens = 0;
}

void Generation::advance(int64_t num_tokens) {
  if (!result_.tokens.empty()) return;
  result_.computed_prompt_tokens += num_tokens;
  result_.prefill_seconds = seconds_between(started_, Clock::now());
  if (callbacks_.on_prefill) {
    callbacks_.on_prefill(result_.cached_prompt_tokens + result_.computed_prompt_tokens,
                          result_.prompt_tokens);
  }
}

bool Generation::append(TokenId token, const std::optional<TokenLogprobs>& logprobs) {
  take_time();
  if (end_rule_.is_end(token, params_)) {
    finish(StopReason::kEndOfSequence);
    return false;
  }
  result_.tokens.push_back(token);
  if (params_.top_logprobs) keep_logprobs(logprobs);
  emit(shown(text_stream_.append(token)));
  if (stop_matcher_.has_matched()) {
    finish(StopReason::kStopString);
  } else if (length() >= length_limit_.num_tokens) {
    finish(length_limit_.reason);
  }
  return true;
}

// The step may have told more of them, because another sequence of it asked for more.
void Generation::keep_logprobs(const std::optional<TokenLogprobs>& logprobs) {
  CHECK(logprobs, "a step without log-probabilities, which its sequence asks for");
  TokenLogprobs& kept = result_.logprobs.emplace_back(*logprobs);
  const auto wanted = static_cast<size_t>(*params_.top_logprobs);
  kept.top.resize(std::min(kept.top.size(), wanted));
}

std::string Generation::shown(const std::string& text) {
  const bool may_end = static_cast<int64_t>(result_.tokens.size()) > params_.min_tokens;
  return stop_matcher_.append(text, may_end);
}

void Generation::take_time() {
  const auto now = Clock::now();
  if (result_.tokens.empty()) {
    first_token_ = last_token_ = now;
    result_.prefill_seconds = seconds_between(started_, now);
  }
  result_.decode_seconds = seconds_between(first_token_, now);
  result_.longest_wait_seconds =
      std::max(result_.longest_wait_seconds, seconds_between(last_token_, now));
  last_token_ = now;
}

void Generation::finish(StopReason reason, std::string error) {
  emit(shown(text_stream_.finish()));
  const bool is_cut = reason == StopReason::kMaxTokens || reason == StopReason::kContextFull;
  if (is_cut && stop_matcher_.has_matched()) reason = StopReason::kStopString;
  emit(stop_matcher_.finish());
  result_.stop_reason = reason;
  result_.error = std::move(error);
  is_finished_ = true;
}

void Generation::abandon() {
  result_.stop_reason = StopReason::kCancelled;
  is_finished_ = true;
}

void Generation::emit(const std::string& text) {
  if (text.empty()) return;
  result_.text += text;
  if (callbacks_.on_text) callbacks_.on_text(text);
}

}  // namespace tessera
