#include "engine/serving/scheduler.h"

#include <algorithm>

namespace tessera {
namespace {

// Of all pages, so many stay free when a sequence is admitted beside others: one in a hundred, and
// one. Otherwise each newcomer's prompt would soon be computed in vain. None where every sequence
// has room to be as long as it can.
int64_t spared_pages(const StepLimits& limits, const PagePool& pool) {
  const int64_t most_tokens = limits.context_size * limits.max_sequences;
  return most_tokens <= pool.num_pages() * pool.page_size() ? 0 : pool.num_pages() / 100 + 1;
}

// Counting ends it with the token that it awaits.
bool is_ending(const Request& request) {
  const Sequence& sequence = *request.sequence;
  return sequence.awaits_token() && sequence.num_tokens() + 1 >= request.max_length;
}

bool decodes(const Request& request) { return request.sequence->num_uncomputed() == 1; }

// Tokens that the pages hold.
int64_t tokens_of(const CachedPrefix& prefix, const PagePool& pool) {
  return static_cast<int64_t>(prefix.pages.size()) * pool.page_size();
}

uint64_t arrival_of(const Request& request) { return *request.sequence->arrival(); }

// `requests` are ordered by age.
template <typename Requests>
void insert_by_age(Requests& requests, const Request& request) {
  requests.insert(std::ranges::upper_bound(requests, arrival_of(request), {}, arrival_of), request);
}

template <typename Requests>
void erase_by_age(Requests& requests, uint64_t arrival) {
  requests.erase(std::ranges::lower_bound(requests, arrival, {}, arrival_of));
}

}  // namespace

Scheduler::Scheduler(const StepLimits& limits, PagePool& pool, PrefixCache& cache,
                     std::function<bool()> reclaim_pages)
    : limits_(limits),
      pool_(pool),
      cache_(cache),
      reclaim_pages_(std::move(reclaim_pages)),
      num_spared_pages_(spared_pages(limits, pool)) {}

void Scheduler::add(const Request& request) {
  waiting_.push_back(request);
  request.sequence->set_arrival(num_arrivals_++);
}

void Scheduler::remove(Sequence& sequence) {
  if (!sequence.arrival()) return;
  if (sequence.is_running()) {
    erase_by_age(running_, *sequence.arrival());
  } else {
    erase_by_age(waiting_, *sequence.arrival());
  }
  sequence.set_arrival(std::nullopt);
  sequence.set_running(false);
}

std::vector<ScheduledSequence> Scheduler::next_batch() {
  const int64_t preemptions_before = num_preemptions_;
  StepPlan plan(limits_);
  schedule_decodes(plan);
  plan.begin_prompts();
  schedule_prompts(plan);
  if (num_preemptions_ == preemptions_before) admit(plan);
  return plan.take();
}

std::vector<ScheduledSequence> Scheduler::batch_ahead() {
  if (!can_run_ahead()) return {};
  return next_batch();
}

bool Scheduler::can_run_ahead() const {
  int64_t missing_pages = 0;
  const PromptLookup::Room room = draft_room();
  for (const Request& request : running_) {
    const Sequence& sequence = *request.sequence;
    if (sequence.has_drafts()) return false;
    if (!decodes(request) || is_ending(request)) continue;
    if (request.lookup != nullptr && request.lookup->awaits_drafts(sequence.tokens(), room)) {
      return false;
    }
    if (request.penalty_window && sequence.awaits_token()) return false;
    missing_pages += pool_.pages_missing(sequence.block_table(), sequence.num_launched() + 1);
  }
  return missing_pages <= pool_.num_free_pages();
}

// The oldest first, so that who gives way is younger and not yet in the step.
void Scheduler::schedule_decodes(StepPlan& plan) {
  PromptLookup::Room room = draft_room();
  for (size_t i = 0; i < running_.size(); ++i) {
    const Request request = running_[i];
    if (!decodes(request) || is_ending(request)) continue;
    ScheduledSequence scheduled = plan.next_tokens(request);
    if (scheduled.num_tokens == 0) continue;
    while (request.sequence->is_running() && !take_pages(*request.sequence, scheduled.end(), 0)) {
      preempt_youngest();
    }
    if (!request.sequence->is_running()) continue;
    add_drafts(scheduled, room);
    schedule(plan, scheduled);
  }
}

PromptLookup::Room Scheduler::draft_room() const {
  const bool has_prompts = !std::ranges::all_of(running_, decodes);
  const bool admits = !waiting_.empty() && num_running() < limits_.max_sequences;
  if (has_prompts || admits) return {};
  return {.drafts = limits_.max_drafted_tokens - num_running(), .sequences = num_running()};
}

void Scheduler::add_drafts(ScheduledSequence& scheduled, PromptLookup::Room& room) {
  const Request& request = *scheduled.request;
  Sequence& sequence = *request.sequence;
  if (request.lookup == nullptr || !scheduled.completes || sequence.awaits_token()) return;
  const int64_t rows = rows_behind(sequence, scheduled.end(), room.drafts);
  scheduled.drafts = request.lookup->drafts(
      sequence.tokens(), {.drafts = std::min(room.drafts, rows), .sequences = room.sequences});
  scheduled.num_tokens += std::ssize(scheduled.drafts);
  room.drafts -= std::ssize(scheduled.drafts);
  pool_.grow(sequence.block_table(), scheduled.end());
}

int64_t Scheduler::rows_behind(const Sequence& sequence, int64_t end, int64_t wanted) const {
  const BlockTable& table = sequence.block_table();
  const bool has_pages =
      pool_.pages_missing(table, end + wanted) + num_running() <= pool_.num_free_pages();
  return has_pages ? wanted : std::ssize(table) * pool_.page_size() - end;
}

// Their pages were taken when they were admitted.
void Scheduler::schedule_prompts(StepPlan& plan) {
  for (const Request& request : running_) {
    if (!decodes(request)) schedule(plan, plan.next_tokens(request));
  }
}

void Scheduler::schedule(StepPlan& plan, const ScheduledSequence& scheduled) {
  if (scheduled.num_tokens == 0) return;
  Sequence& sequence = *scheduled.request->sequence;
  plan.add(scheduled);
  cache_.add(sequence, std::min(scheduled.end(), sequence.num_tokens()));
}

// Who could share what this step computes for another waits for the next one, and those behind it
// go first. Who lacks pages is not passed: it would be passed for ever.
void Scheduler::admit(StepPlan& plan) {
  int64_t places = limits_.max_sequences - (num_running() - num_ending());
  size_t next = 0;
  for (size_t looks = waiting_.size(); looks > 0 && places > 0 && !plan.is_full(); --looks) {
    const Request request = waiting_[next];
    const CachedPrefix prefix = cache_.find(request.sequence->tokens());
    if (prefix.is_coming_on && tokens_of(prefix, pool_) >= request.sequence->num_cached()) {
      ++next;
      continue;
    }
    if (!begin(request, prefix)) return;
    schedule(plan, plan.next_tokens(request));
    waiting_.erase(waiting_.begin() + static_cast<int64_t>(next));
    insert_by_age(running_, request);
    --places;
  }
}

bool Scheduler::begin(const Request& request, const CachedPrefix& prefix) {
  Sequence& sequence = *request.sequence;
  sequence.set_running(true);
  const int64_t num_spared = running_.empty() ? 0 : num_spared_pages_;
  if (tokens_of(prefix, pool_) > sequence.num_cached()
          ? take_pages_behind(sequence, prefix, num_spared)
          : take_pages(sequence, sequence.num_tokens(), num_spared)) {
    return true;
  }
  sequence.set_running(false);
  return false;
}

bool Scheduler::take_pages_behind(Sequence& sequence, const CachedPrefix& prefix,
                                  int64_t num_spared) {
  sequence.release_cache();
  const int64_t num_missing = pool_.pages_missing(prefix.pages, sequence.num_tokens()) + num_spared;
  const auto is_free = [&](int32_t page) { return pool_.num_holders(page) == 0; };
  while (num_missing + std::ranges::count_if(prefix.pages, is_free) > pool_.num_free_pages()) {
    if (!reclaim_pages_()) return false;
  }
  sequence.adopt(prefix.pages, prefix.names);
  pool_.grow(sequence.block_table(), sequence.num_tokens());
  return true;
}

bool Scheduler::take_pages(Sequence& sequence, int64_t num_tokens, int64_t num_spared) {
  BlockTable& table = sequence.block_table();
  while (pool_.pages_missing(table, num_tokens) + num_spared > pool_.num_free_pages()) {
    if (!reclaim_pages_()) return false;
  }
  pool_.grow(table, num_tokens);
  return true;
}

void Scheduler::preempt_youngest() {
  const Request request = running_.back();
  running_.pop_back();
  request.sequence->set_running(false);
  request.sequence->release_cache();
  insert_by_age(waiting_, request);
  ++num_preemptions_;
}

int64_t Scheduler::num_ending() const { return std::ranges::count_if(running_, is_ending); }

void Scheduler::launched(std::span<const ScheduledSequence> batch) {
  int64_t num_draws = 0;
  for (const ScheduledSequence& scheduled : batch) {
    scheduled.request->sequence->launch(scheduled.end(), num_draws);
    num_draws += scheduled.num_draws();
  }
  cache_.publish();
}

}  // namespace tessera
