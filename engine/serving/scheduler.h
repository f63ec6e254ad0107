// Decides which tokens of which sequences the next forward pass computes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "engine/model/kv_cache.h"
#include "engine/serving/sequence.h"

namespace tessera {

// A sequence and which of its tokens to compute in a step.
struct ScheduledSequence {
  Sequence* sequence = nullptr;  // null once its generation has ended
  int64_t begin = 0;             // position of the first token
  int64_t num_tokens = 0;
  bool completes = false;  // reaches the sequence's last token, so that a new one is sampled

  int64_t end() const { return begin + num_tokens; }
};

// The first `num_tokens` of the sequence's uncached tokens.
ScheduledSequence next_tokens(Sequence& sequence, int64_t num_tokens);

struct SchedulerLimits {
  int64_t max_tokens = 0;     // query tokens of a step
  int64_t max_sequences = 0;  // sequences running at the same time
  int64_t context_size = 0;   // tokens of a sequence
};

class Scheduler {
 public:
  // `reclaim_pages` frees pages that no running sequence uses; false when there are none.
  Scheduler(const SchedulerLimits& limits, KvCache& cache, std::function<bool()> reclaim_pages)
      : limits_(limits), cache_(cache), reclaim_pages_(std::move(reclaim_pages)) {}

  // Queues a sequence that has been started.
  void add(Sequence& sequence) { waiting_.push_back(&sequence); }

  // Forgets a sequence wherever it is; done when it finishes or is destroyed.
  void remove(Sequence& sequence);

  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  const std::vector<Sequence*>& running() const { return running_; }

  // The next step: first one token for every sequence that is decoding, then chunks of the prompts
  // that are not computed yet, oldest first, within the token budget and the free pages. KV pages
  // for the step are taken. Sequences with one token come first. Empty when idle; when pages are
  // short, fewer sequences than could run.
  std::vector<ScheduledSequence> next_batch();

  // The step after `batch`, the newest, while the tokens that it samples are not known: one more
  // token of each of its sequences, for which KV pages are taken. Empty where next_batch() has to
  // decide once they are known: when not exactly the running sequences decode, when one ends by
  // count or needs its newest token for penalties, or when free pages are short.
  std::vector<ScheduledSequence> batch_after(std::span<const ScheduledSequence> batch);

 private:
  bool take_pages(Sequence& sequence, int64_t num_tokens);

  SchedulerLimits limits_;
  KvCache& cache_;
  std::function<bool()> reclaim_pages_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;
};

}  // namespace tessera
