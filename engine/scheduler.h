// Decides which tokens of which sequences the next forward pass computes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "engine/kv_cache.h"
#include "engine/sequence.h"

namespace tessera {

// A sequence and how many of its uncached tokens to compute in a step.
struct ScheduledSequence {
  Sequence* sequence = nullptr;
  int64_t num_tokens = 0;

  // Whether the step reaches the sequence's last token, so that a new one is sampled.
  bool completes() const { return num_tokens == sequence->num_uncached(); }
};

struct SchedulerLimits {
  int64_t max_tokens = 0;     // query tokens of a step
  int64_t max_sequences = 0;  // sequences running at the same time
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

 private:
  bool take_pages(Sequence& sequence, int64_t num_tokens);

  SchedulerLimits limits_;
  KvCache& cache_;
  std::function<bool()> reclaim_pages_;
  std::deque<Sequence*> waiting_;
  std::vector<Sequence*> running_;
};

}  // namespace tessera
