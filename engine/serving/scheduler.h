// Decides which tokens of which sequences the next forward pass computes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/model/step_limits.h"
#include "engine/serving/sequence.h"

namespace tessera {

class Generation;

// A sequence that is to be answered, and what its steps depend on.
struct Request {
  Sequence* sequence = nullptr;
  Generation* generation = nullptr;  // only handed on: no decision depends on it
  int64_t max_length = 0;            // tokens of prompt and answer at which counting ends it
  bool has_penalty = false;          // a draw needs to know all tokens before it
};

// A sequence and which of its tokens to compute in a step.
struct ScheduledSequence {
  std::optional<Request> request;  // nothing once its generation has ended
  int64_t begin = 0;               // position of the first token
  int64_t num_tokens = 0;
  bool completes = false;  // reaches the sequence's last token, so that a new one is drawn

  int64_t end() const { return begin + num_tokens; }
};

class Scheduler {
 public:
  // `reclaim_pages` frees pages that no running sequence uses; false when there are none.
  Scheduler(const StepLimits& limits, PagePool& pool, std::function<bool()> reclaim_pages)
      : limits_(limits), pool_(pool), reclaim_pages_(std::move(reclaim_pages)) {}

  // Queues a sequence that has been started.
  void add(const Request& request) { waiting_.push_back(request); }

  // Forgets a sequence wherever it is; done when it finishes or is destroyed.
  void remove(const Sequence& sequence);

  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  bool is_running(const Sequence& sequence) const;

  // The next step: first one token for every sequence that is decoding, then chunks of the prompts
  // that are not computed yet, oldest first, within the token budget and the free pages. KV pages
  // for the step are taken. Sequences with one token come first. Empty when idle; when pages are
  // short, fewer sequences than could run.
  std::vector<ScheduledSequence> next_batch();

  // The step after `batch`, the newest, while the tokens that it draws are not known: one more
  // token of each of its sequences, for which KV pages are taken. Empty where next_batch() has to
  // decide once they are known: when not exactly the running sequences decode, when one ends by
  // count or needs its newest token for penalties, or when free pages are short.
  std::vector<ScheduledSequence> batch_after(std::span<const ScheduledSequence> batch);

 private:
  bool may_admit() const;
  bool are_running(std::span<const ScheduledSequence> batch) const;
  bool take_pages(Sequence& sequence, int64_t num_tokens);

  StepLimits limits_;
  PagePool& pool_;
  std::function<bool()> reclaim_pages_;
  std::deque<Request> waiting_;
  std::vector<Request> running_;
};

}  // namespace tessera
