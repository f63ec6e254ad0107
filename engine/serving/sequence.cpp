#include "engine/serving/sequence.h"

#include <algorithm>

namespace tessera {
namespace {

double seconds_between(Sequence::Clock::time_point begin, Sequence::Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

Sequence::Sequence(KvCache& cache, const Tokenizer& tokenizer,
                   std::function<void(Sequence&)> on_destroy)
    : cache_(cache), tokenizer_(tokenizer), on_destroy_(std::move(on_destroy)) {}

Sequence::~Sequence() {
  on_destroy_(*this);
  release_cache();
}

void SequenceDeleter::operator()(Sequence* sequence) const { delete sequence; }

void Sequence::start(std::span<const TokenId> prompt, const SamplingParams& params,
                     const GenerationCallbacks& callbacks) {
  const std::span cached(tokens_.data(), static_cast<size_t>(num_cached_));
  const auto common = std::ranges::mismatch(cached, prompt).in1 - cached.begin();
  num_cached_ = std::min<int64_t>(common, static_cast<int64_t>(prompt.size()) - 1);
  cache_.shrink(block_table_, num_cached_);

  tokens_.assign(prompt.begin(), prompt.end());
  params_ = params;
  callbacks_ = callbacks;
  is_cancelled_ = false;
  result_ = {};
  result_.prompt_tokens = num_tokens();
  result_.cached_prompt_tokens = num_cached_;
  text_stream_.emplace(tokenizer_);
  stop_matcher_ = StopMatcher(params.stop);
  state_ = SequenceState::kWaiting;
  started_ = last_used_ = Clock::now();
}

bool Sequence::is_cancelled() {
  is_cancelled_ = is_cancelled_ || (callbacks_.is_cancelled && callbacks_.is_cancelled());
  return is_cancelled_;
}

bool Sequence::next_token_is_last(int64_t context_size) const {
  return (params_.max_tokens > 0 && num_generated() + 1 >= params_.max_tokens) ||
         num_tokens() + 1 >= context_size;
}

void Sequence::advance(int64_t num_tokens) {
  num_cached_ += num_tokens;
  last_used_ = Clock::now();
  if (num_generated() > 0) return;
  result_.computed_prompt_tokens += num_tokens;
  result_.prefill_seconds = seconds_between(started_, last_used_);
  if (callbacks_.on_prefill) callbacks_.on_prefill(num_cached_, result_.prompt_tokens);
}

void Sequence::append(TokenId token, std::span<const TokenId> stop_tokens, int64_t context_size) {
  const auto now = Clock::now();
  if (num_generated() == 0) {
    first_token_ = now;
    result_.prefill_seconds = seconds_between(started_, now);
  }
  result_.decode_seconds = seconds_between(first_token_, now);
  if (!params_.ignore_eos && std::ranges::count(stop_tokens, token) > 0) {
    finish(StopReason::kEndOfSequence);
    return;
  }
  tokens_.push_back(token);
  result_.tokens.push_back(token);
  emit(stop_matcher_.append(text_stream_->append(token)));
  if (stop_matcher_.has_matched()) {
    finish(StopReason::kStopString);
  } else if (params_.max_tokens > 0 && num_generated() >= params_.max_tokens) {
    finish(StopReason::kMaxTokens);
  } else if (num_tokens() >= context_size) {
    finish(StopReason::kContextFull);
  }
}

void Sequence::finish(StopReason reason, std::string error) {
  emit(stop_matcher_.append(text_stream_->finish()));
  emit(stop_matcher_.finish());
  result_.stop_reason = reason;
  result_.error = std::move(error);
  state_ = SequenceState::kFinished;
  cache_.shrink(block_table_, num_cached_);
}

void Sequence::abandon() {
  result_.stop_reason = StopReason::kCancelled;
  state_ = SequenceState::kFinished;
  release_cache();
}

void Sequence::release_cache() {
  num_cached_ = 0;
  if (state_ == SequenceState::kWaiting) result_.cached_prompt_tokens = 0;
  cache_.shrink(block_table_, 0);
}

void Sequence::emit(const std::string& text) {
  if (text.empty()) return;
  result_.text += text;
  if (callbacks_.on_text) callbacks_.on_text(text);
}

}  // namespace tessera
