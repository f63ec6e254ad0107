// Decides which tokens of which sequences the next forward pass computes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "engine/model/page_pool.h"
#include "engine/model/step_limits.h"
#include "engine/serving/prefix_cache.h"
#include "engine/serving/prompt_lookup.h"
#include "engine/serving/request.h"
#include "engine/serving/step_plan.h"

namespace tessera {

class Scheduler {
 public:
  // Keeps references. `reclaim_pages` frees pages that no running sequence uses; false when there
  // are none.
  Scheduler(const StepLimits& limits, PagePool& pool, PrefixCache& cache,
            std::function<bool()> reclaim_pages);

  // Queues a sequence that has been started.
  void add(const Request& request);

  // Forgets a sequence, if it is scheduled; done when it finishes or is destroyed.
  void remove(Sequence& sequence);

  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }
  // All that run, then all that wait, each oldest first.
  size_t num_requests() const { return running_.size() + waiting_.size(); }
  const Request& request(size_t index) const {
    return index < running_.size() ? running_[index] : waiting_[index - running_.size()];
  }
  // The youngest that runs, or, if none does, that waits. Not when idle.
  const Request& youngest() const { return running_.empty() ? waiting_.back() : running_.back(); }

  // The next step, while the tokens of all steps before are known: one token for every sequence
  // that is decoding, then chunks of the prompts that run, then chunks of those that wait and can
  // be admitted, each oldest first, within the limits. Takes the step's KV pages. If these do not
  // suffice for the sequences that decode, the youngest one waits again and is computed anew when
  // there are pages. Sequences with one token come first. Empty when idle.
  std::vector<ScheduledSequence> next_batch();

  // The same while the tokens that the newest step draws are not known yet. The step computes that
  // token of each sequence, except of those that counting ends there. Empty where next_batch() has
  // to decide once the tokens are known: when penalties need them, when that step has drafts or
  // drafts may follow its tokens, and when free pages are short, because some sequences may turn
  // out to have ended.
  std::vector<ScheduledSequence> batch_ahead();

  // The step that was planned last has been launched, or given up.
  void launched(std::span<const ScheduledSequence> batch);
  void given_up() { cache_.withdraw(); }

 private:
  bool can_run_ahead() const;
  // The room for drafts of one sequence in a step in which all running sequences decode; none
  // beside prompts.
  PromptLookup::Room draft_room() const;
  void add_drafts(ScheduledSequence& scheduled, PromptLookup::Room& room);
  // For how many tokens behind `end` the sequence has pages, or can take free ones that no decoding
  // sequence needs.
  int64_t rows_behind(const Sequence& sequence, int64_t end, int64_t wanted) const;
  void schedule_decodes(StepPlan& plan);
  void schedule_prompts(StepPlan& plan);
  void schedule(StepPlan& plan, const ScheduledSequence& scheduled);
  void admit(StepPlan& plan);
  // Takes pages for all that is known of a waiting sequence, the cached ones of `prefix` among
  // them. True if there were enough: the sequence then runs.
  bool begin(const Request& request, const CachedPrefix& prefix);
  bool take_pages_behind(Sequence& sequence, const CachedPrefix& prefix, int64_t num_spared);
  // Takes pages for num_tokens. False if that would leave fewer than num_spared pages free.
  bool take_pages(Sequence& sequence, int64_t num_tokens, int64_t num_spared);
  void preempt_youngest();
  int64_t num_ending() const;

  StepLimits limits_;
  PagePool& pool_;
  PrefixCache& cache_;
  std::function<bool()> reclaim_pages_;
  int64_t num_spared_pages_;  // stay free when a sequence is admitted beside others
  // Both oldest first.
  std::deque<Request> waiting_;
  std::vector<Request> running_;
  uint64_t num_arrivals_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace tessera
