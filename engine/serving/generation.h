// One answer while it comes into being: what the caller asked for and hears, where it ends, and
// what it came to. The tokens that it continues are a Sequence's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/model/sampling_params.h"
#include "engine/serving/end_rule.h"
#include "engine/serving/generation_callbacks.h"
#include "engine/serving/generation_result.h"
#include "engine/text/stop_matcher.h"
#include "engine/text/tokenizer.h"

namespace tessera {

// Tokens of a prompt.
struct PromptSize {
  int64_t num_tokens = 0;
  int64_t num_cached = 0;  // of these, in the sequence's KV cache
  bool has_text = false;   // not only special tokens
};

class Generation {
 public:
  using Clock = std::chrono::steady_clock;

  // The tokenizer and the rule must outlive the generation. Its clock starts.
  Generation(const Tokenizer& tokenizer, const EndRule& end_rule, const PromptSize& prompt,
             const SamplingParams& params, const GenerationCallbacks& callbacks);

  const SamplingParams& params() const { return params_; }
  const GenerationResult& result() const { return result_; }
  // Tokens of prompt and answer at which counting ends it.
  int64_t max_length() const { return length_limit_.num_tokens; }
  bool is_finished() const { return is_finished_; }
  // What the answer's token number `index`, from 0, may not be.
  std::span<const TokenId> barred_tokens(int64_t index) const {
    return end_rule_.barred_tokens(index, params_);
  }
  // Asks until the answer is yes.
  bool is_cancelled();

  // From now on is_cancelled() says yes.
  void cancel() { is_cancelled_ = true; }

  // Records that the sequence is computed from now on, with num_cached of its tokens in the cache:
  // more than there were, or fewer, or, computed anew after it had to give way, from its start.
  void begin_computing(int64_t num_cached);

  // Records that num_tokens more of the sequence's tokens have been computed, and reports the
  // progress of the prompt.
  void advance(int64_t num_tokens);

  // Records drafts that a step computed, or that one of them was the next token.
  void count_drafts(int64_t num_drafts) { result_.drafted_tokens += num_drafts; }
  void count_accepted() { ++result_.accepted_tokens; }

  // Takes the next token: streams its text, and ends the generation where it or a limit does. False
  // when the token is no part of the answer. `logprobs`: of one asked for them.
  bool append(TokenId token, const std::optional<TokenLogprobs>& logprobs = {});

  // Ends the generation and streams what is left of its text.
  void finish(StopReason reason, std::string error = {});

  // Ends the generation without a word, as cancelled.
  void abandon();

 private:
  int64_t length() const {
    return result_.prompt_tokens + static_cast<int64_t>(result_.tokens.size());
  }
  void take_time();
  void keep_logprobs(const std::optional<TokenLogprobs>& logprobs);
  void emit(const std::string& text);
  // The part of the text so far that may be shown: stop strings count only behind min_tokens.
  std::string shown(const std::string& text);

  const EndRule& end_rule_;
  SamplingParams params_;
  GenerationCallbacks callbacks_;
  LengthLimit length_limit_;
  TextStream text_stream_;
  StopMatcher stop_matcher_;
  bool is_cancelled_ = false;
  bool is_finished_ = false;
  GenerationResult result_;
  Clock::time_point started_ = Clock::now();
  Clock::time_point first_token_;
  Clock::time_point last_token_;
};

}  // namespace tessera
