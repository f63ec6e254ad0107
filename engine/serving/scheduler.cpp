#include "engine/serving/scheduler.h"

#include <algorithm>

namespace tessera {
namespace {

// The first `num_tokens` of the sequence's uncached tokens.
ScheduledSequence next_tokens(const Request& request, int64_t num_tokens) {
  const Sequence& sequence = *request.sequence;
  return {.request = request,
          .begin = sequence.num_cached(),
          .num_tokens = num_tokens,
          .completes = num_tokens == sequence.num_uncached()};
}

// The token that a step draws, if it is not the last that the sequence may have.
ScheduledSequence token_after(const ScheduledSequence& scheduled) {
  return {
      .request = scheduled.request, .begin = scheduled.end(), .num_tokens = 1, .completes = true};
}

// Whether more than the tokens that the host knows decides what follows the step.
bool needs_its_token(const ScheduledSequence& scheduled) {
  const Request& request = *scheduled.request;
  return request.has_penalty || request.sequence->num_tokens() + 1 >= request.max_length;
}

}  // namespace

void Scheduler::remove(const Sequence& sequence) {
  const auto is_it = [&](const Request& request) { return request.sequence == &sequence; };
  std::erase_if(waiting_, is_it);
  std::erase_if(running_, is_it);
}

bool Scheduler::is_running(const Sequence& sequence) const {
  return std::ranges::find(running_, &sequence, &Request::sequence) != running_.end();
}

bool Scheduler::may_admit() const {
  return !waiting_.empty() && static_cast<int64_t>(running_.size()) < limits_.max_sequences;
}

std::vector<ScheduledSequence> Scheduler::next_batch() {
  while (may_admit()) {
    running_.push_back(waiting_.front());
    waiting_.pop_front();
  }

  std::vector<ScheduledSequence> batch;
  int64_t budget = limits_.max_tokens;
  const auto schedule = [&](const Request& request) {
    const int64_t num_tokens = std::min(request.sequence->num_uncached(), budget);
    if (num_tokens == 0 || !take_pages(*request.sequence, num_tokens)) return;
    batch.push_back(next_tokens(request, num_tokens));
    budget -= num_tokens;
  };
  for (const Request& request : running_) {
    if (request.sequence->num_uncached() == 1) schedule(request);
  }
  for (const Request& request : running_) {
    if (request.sequence->num_uncached() > 1) schedule(request);
  }
  // A last chunk of one token is a decode to the kernels, and decodes come first.
  std::ranges::stable_partition(
      batch, [](const ScheduledSequence& scheduled) { return scheduled.num_tokens == 1; });
  return batch;
}

bool Scheduler::are_running(std::span<const ScheduledSequence> batch) const {
  return std::ranges::equal(
      batch, running_, [](const ScheduledSequence& scheduled, const Request& request) {
        return scheduled.request && scheduled.request->sequence == request.sequence;
      });
}

std::vector<ScheduledSequence> Scheduler::batch_after(std::span<const ScheduledSequence> batch) {
  if (may_admit() || !are_running(batch)) return {};
  int64_t missing_pages = 0;
  for (const ScheduledSequence& scheduled : batch) {
    if (!scheduled.completes || needs_its_token(scheduled)) return {};
    missing_pages +=
        pool_.pages_missing(scheduled.request->sequence->block_table(), scheduled.end() + 1);
  }
  // Caches of others are not given up for tokens that may not come.
  if (missing_pages > pool_.num_free_pages()) return {};
  std::vector<ScheduledSequence> next;
  for (const ScheduledSequence& scheduled : batch) {
    next.push_back(token_after(scheduled));
    pool_.grow(scheduled.request->sequence->block_table(), next.back().end());
  }
  return next;
}

bool Scheduler::take_pages(Sequence& sequence, int64_t num_tokens) {
  const int64_t context_length = sequence.num_cached() + num_tokens;
  BlockTable& table = sequence.block_table();
  while (pool_.pages_missing(table, context_length) > pool_.num_free_pages()) {
    if (!reclaim_pages_()) return false;
  }
  pool_.grow(table, context_length);
  return true;
}

}  // namespace tessera
