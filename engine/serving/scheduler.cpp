#include "engine/serving/scheduler.h"

#include <algorithm>

namespace tessera {

ScheduledSequence next_tokens(Sequence& sequence, int64_t num_tokens) {
  return {.sequence = &sequence,
          .begin = sequence.num_cached(),
          .num_tokens = num_tokens,
          .completes = num_tokens == sequence.num_uncached()};
}

void Scheduler::remove(Sequence& sequence) {
  std::erase(waiting_, &sequence);
  std::erase(running_, &sequence);
}

std::vector<ScheduledSequence> Scheduler::next_batch() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < limits_.max_sequences) {
    running_.push_back(waiting_.front());
    running_.back()->set_running();
    waiting_.pop_front();
  }

  std::vector<ScheduledSequence> batch;
  int64_t budget = limits_.max_tokens;
  const auto schedule = [&](Sequence* sequence) {
    const int64_t num_tokens = std::min(sequence->num_uncached(), budget);
    if (num_tokens == 0 || !take_pages(*sequence, num_tokens)) return;
    batch.push_back(next_tokens(*sequence, num_tokens));
    budget -= num_tokens;
  };
  for (Sequence* sequence : running_) {
    if (sequence->num_uncached() == 1) schedule(sequence);
  }
  for (Sequence* sequence : running_) {
    if (sequence->num_uncached() > 1) schedule(sequence);
  }
  // A last chunk of one token is a decode to the kernels, and decodes come first.
  std::ranges::stable_partition(
      batch, [](const ScheduledSequence& scheduled) { return scheduled.num_tokens == 1; });
  return batch;
}

std::vector<ScheduledSequence> Scheduler::batch_after(std::span<const ScheduledSequence> batch) {
  const bool may_admit =
      !waiting_.empty() && static_cast<int64_t>(running_.size()) < limits_.max_sequences;
  if (may_admit || !std::ranges::equal(batch, running_, {}, &ScheduledSequence::sequence)) {
    return {};
  }
  int64_t missing_pages = 0;
  for (const ScheduledSequence& scheduled : batch) {
    const Sequence& sequence = *scheduled.sequence;
    if (!scheduled.completes || sequence.next_token_is_last(limits_.context_size) ||
        has_penalty(sequence.params())) {
      return {};
    }
    missing_pages += cache_.pages_missing(sequence.block_table(), scheduled.end() + 1);
  }
  // Caches of others are not given up for tokens that may not come.
  if (missing_pages > cache_.num_free_pages()) return {};
  std::vector<ScheduledSequence> next;
  for (const ScheduledSequence& scheduled : batch) {
    cache_.grow(scheduled.sequence->block_table(), scheduled.end() + 1);
    next.push_back({.sequence = scheduled.sequence,
                    .begin = scheduled.end(),
                    .num_tokens = 1,
                    .completes = true});
  }
  return next;
}

bool Scheduler::take_pages(Sequence& sequence, int64_t num_tokens) {
  const int64_t context_length = sequence.num_cached() + num_tokens;
  BlockTable& table = sequence.block_table();
  while (cache_.pages_missing(table, context_length) > cache_.num_free_pages()) {
    if (!reclaim_pages_()) return false;
  }
  cache_.grow(table, context_length);
  return true;
}

}  // namespace tessera
