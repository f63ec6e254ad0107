// One conversation or document: its tokens, its KV pages, and the generation that runs on it.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/model/kv_cache.h"
#include "engine/text/stop_matcher.h"

namespace tessera {

enum class SequenceState : uint8_t { kIdle, kWaiting, kRunning, kFinished };

class Sequence {
 public:
  using Clock = std::chrono::steady_clock;

  Sequence(KvCache& cache, const Tokenizer& tokenizer, std::function<void(Sequence&)> on_destroy);
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  // Begins a generation after `prompt`. Cached tokens that the prompt begins with are kept, except
  // its last token, whose logits are needed.
  void start(std::span<const TokenId> prompt, const SamplingParams& params,
             const GenerationCallbacks& callbacks);

  SequenceState state() const { return state_; }
  void set_running() { state_ = SequenceState::kRunning; }
  const SamplingParams& params() const { return params_; }
  // Asks until the answer is yes.
  bool is_cancelled();
  const GenerationResult& result() const { return result_; }

  const std::vector<TokenId>& tokens() const { return tokens_; }  // prompt and answer
  int64_t num_tokens() const { return static_cast<int64_t>(tokens_.size()); }
  int64_t num_cached() const { return num_cached_; }  // leading tokens whose KV is in the pages
  int64_t num_uncached() const { return num_tokens() - num_cached_; }
  int64_t num_generated() const { return num_tokens() - result_.prompt_tokens; }
  // Whether a limit ends the generation with the next token, whichever it is.
  bool next_token_is_last(int64_t context_size) const;
  BlockTable& block_table() { return block_table_; }
  const BlockTable& block_table() const { return block_table_; }
  Clock::time_point last_used() const { return last_used_; }

  // Records that num_tokens more tokens have been computed, and reports prefill progress.
  void advance(int64_t num_tokens);

  // Takes the next token: ends the generation when it is one of `stop_tokens` or a limit is
  // reached, else streams its text.
  void append(TokenId token, std::span<const TokenId> stop_tokens, int64_t context_size);

  // Ends the generation; the tokens and their cache stay for a later prompt. Pages that were taken
  // for a token that does not come are given back.
  void finish(StopReason reason, std::string error = {});

  // Ends the generation without streaming what is left, and gives the pages back.
  void abandon();

  // Gives the pages back. The next prompt is computed from its start.
  void release_cache();

 private:
  void emit(const std::string& text);

  KvCache& cache_;
  const Tokenizer& tokenizer_;
  std::function<void(Sequence&)> on_destroy_;

  std::vector<TokenId> tokens_;
  int64_t num_cached_ = 0;
  BlockTable block_table_;

  SequenceState state_ = SequenceState::kIdle;
  SamplingParams params_;
  GenerationCallbacks callbacks_;
  bool is_cancelled_ = false;
  GenerationResult result_;
  std::optional<TextStream> text_stream_;  // of the generation that runs
  StopMatcher stop_matcher_;
  Clock::time_point started_;
  Clock::time_point first_token_;
  Clock::time_point last_used_;
};

}  // namespace tessera
