#include "engine/serving/generation_loop.h"

#include <algorithm>
#include <utility>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// Rows of the embedding behind the vocabulary belong to no token.
bool is_text(const Tokenizer& tokenizer, TokenId id) {
  return id < tokenizer.size() && !tokenizer.is_special(id);
}

}  // namespace

// A sequence may be as long as all pages together, so that the oldest can always be computed.
GenerationLoop::GenerationLoop(StepRunner& runner, PagePool& pool, const Tokenizer& tokenizer,
                               const LoopOptions& options)
    : runner_(runner),
      pool_(pool),
      tokenizer_(tokenizer),
      end_rule_{.stop_tokens = options.stop_tokens,
                .context_size =
                    std::min(options.limits.context_size, pool.num_pages() * pool.page_size())},
      runs_ahead_(options.runs_ahead),
      has_drafts_(options.limits.max_drafted_tokens > 0),
      draft_costs_(options.draft_costs),
      cache_(pool, options.prefix_cache),
      scheduler_(options.limits, pool, cache_, [this] { return release_oldest_unused_cache(); }) {}

Sequence& GenerationLoop::create_sequence() {
  std::unique_ptr<Member> member(new Member{.sequence = Sequence(pool_), .generation = {}});
  Sequence& sequence = member->sequence;
  Member& added = *members_.emplace(&sequence, std::move(member)).first->second;
  added.place = others_.insert(others_.end(), &sequence);
  return sequence;
}

void GenerationLoop::set_idle(Member& member, bool is_idle) {
  std::list<Sequence*>& to = is_idle ? idle_ : others_;
  to.splice(to.end(), member.is_idle ? idle_ : others_, member.place);
  member.is_idle = is_idle;
}

void GenerationLoop::destroy(Sequence& sequence) {
  abandon(sequence);
  forget(sequence);
  const auto found = members_.find(&sequence);
  if (found == members_.end()) return;
  const Member& member = *found->second;
  (member.is_idle ? idle_ : others_).erase(member.place);
  if (is_stepping_) {
    found->second->next_destroyed = std::move(destroyed_);
    destroyed_ = std::move(found->second);
  }
  members_.erase(found);
}

GenerationLoop::Member& GenerationLoop::member_of(const Sequence& sequence) const {
  const auto found = members_.find(&sequence);
  CHECK(found != members_.end(), "the sequence belongs to another engine");
  return *found->second;
}

const Generation* GenerationLoop::generation(const Sequence& sequence) const {
  const Member& member = member_of(sequence);
  return member.generation ? &*member.generation : nullptr;
}

bool GenerationLoop::is_generating(const Sequence& sequence) const {
  return member_of(sequence).is_generating();
}

void GenerationLoop::submit(Sequence& sequence, std::span<const TokenId> prompt,
                            const SamplingParams& params, const GenerationCallbacks& callbacks) {
  Member& member = member_of(sequence);
  const auto num_tokens = static_cast<int64_t>(prompt.size());
  CHECK(num_tokens <= end_rule_.context_size, "a prompt of ", counted(num_tokens, "token"),
        " does not fit the KV cache of ", counted(pool_.num_pages(), "page"), " of ",
        pool_.page_size());
  sequence.start(prompt);
  set_idle(member, true);
  const PromptSize size = {
      .num_tokens = num_tokens,
      .num_cached = sequence.num_cached(),
      .has_text = std::ranges::any_of(prompt, [&](TokenId id) { return is_text(tokenizer_, id); })};
  Generation& generation =
      member.generation.emplace(tokenizer_, end_rule_, size, params, callbacks);
  Request request = {
      .sequence = &sequence, .generation = &generation, .max_length = generation.max_length()};
  if (has_penalty(params)) request.penalty_window = params.penalty_window;
  try {
    request.lookup = make_lookup(member, params);
    scheduler_.add(request);
  } catch (...) {
    generation.abandon();
    throw;
  }
}

void GenerationLoop::restore(std::span<const TokenId> tokens, const FillPages& fill) {
  Sequence sequence(pool_);
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  while (pool_.num_free_pages() * pool_.page_size() < num_tokens && release_oldest_unused_cache()) {
  }
  sequence.reserve(tokens);
  fill(sequence.block_table());
  sequence.advance(num_tokens);
  cache_.add(sequence, num_tokens);
  cache_.publish();
}

PromptLookup* GenerationLoop::make_lookup(Member& member, const SamplingParams& params) {
  member.lookup.reset();
  if (!has_drafts_ || has_penalty(params)) return nullptr;
  const int64_t prompt_tokens = member.generation->result().prompt_tokens;
  return &member.lookup.emplace(
      draft_costs_, PromptLookup::Lengths{.prompt_tokens = prompt_tokens,
                                          .first_length = prompt_tokens + params.min_tokens,
                                          .max_length = member.generation->max_length()});
}

void GenerationLoop::cancel(const Sequence& sequence) {
  Member& member = member_of(sequence);
  if (member.is_generating()) member.generation->cancel();
}

void GenerationLoop::abandon(Sequence& sequence) {
  const auto found = members_.find(&sequence);
  if (found == members_.end() || !found->second->is_generating()) return;
  forget(sequence);
  found->second->generation->abandon();
}

bool GenerationLoop::step() {
  CHECK(!is_stepping_, "a callback of a generation runs the engine, which runs already");
  is_stepping_ = true;
  bool has_more = false;
  try {
    has_more = run_step();
  } catch (...) {
    abandon_all();
    end_step();
    throw;
  }
  end_step();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return has_more;
}

void GenerationLoop::end_step() {
  while (destroyed_) destroyed_ = std::move(destroyed_->next_destroyed);
  is_stepping_ = false;
}

// Half a step leaves caches of unknown contents: every generation ends, and what comes is computed
// anew. Takes no memory, which may be what the step lacked.
void GenerationLoop::abandon_all() {
  launched_.clear();
  thrown_ = nullptr;
  while (!scheduler_.is_idle()) {
    const Request request = scheduler_.youngest();
    scheduler_.remove(*request.sequence);
    request.generation->abandon();
    request.sequence->release_cache();
  }
  cache_.clear();
}

bool GenerationLoop::run_step() {
  finish_cancelled();
  if (!launched_.empty() && !launched_.front().is_wanted()) launched_.pop_front();
  if (launched_.empty()) {
    std::vector<ScheduledSequence> batch = scheduler_.next_batch();
    if (batch.empty()) {
      CHECK(scheduler_.is_idle(), "the KV cache of ", counted(pool_.num_pages(), "page"),
            " is too small for the running sequences");
      return false;
    }
    if (!launch(std::move(batch))) {
      finish_cancelled();
      return !scheduler_.is_idle();
    }
  }
  // Log-probabilities are kept until the next step.
  if (runs_ahead_ && !launched_.front().tokens.has_logprobs) {
    // The device goes on with this one while the host sees to the tokens of the one before.
    std::vector<ScheduledSequence> next = scheduler_.batch_ahead();
    if (!next.empty()) launch(std::move(next));
  }
  collect(launched_.front());
  launched_.pop_front();
  return !scheduler_.is_idle();
}

void GenerationLoop::finish_cancelled() {
  // Who is asked may submit and destroy. Whoever is passed over by that is asked in the next step.
  for (size_t i = 0; i < scheduler_.num_requests(); ++i) {
    const Request request = scheduler_.request(i);
    const bool ends = is_cancelled(*request.generation);
    if (ends && request.sequence->arrival()) cancelled_.push_back(request);
  }
  // What one of them tells last may destroy others of them.
  while (!cancelled_.empty()) {
    const Request request = cancelled_.front();
    cancelled_.pop_front();
    guard(request, [&] { finish(request, StopReason::kCancelled); });
  }
}

template <typename Action>
void GenerationLoop::guard(const Request& request, Action action) {
  try {
    action();
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
    forget(*request.sequence);
    request.generation->abandon();
  }
}

bool GenerationLoop::release_oldest_unused_cache() {
  for (auto next = idle_.begin(); next != idle_.end();) {
    Sequence& sequence = **next++;
    if (sequence.is_running()) continue;
    set_idle(member_of(sequence), false);
    if (sequence.block_table().empty()) continue;
    sequence.release_cache();
    return true;
  }
  return false;
}

bool GenerationLoop::launch(std::vector<ScheduledSequence> batch) {
  try {
    const LaunchedTokens tokens =
        runner_.launch(chunks_of(batch), [&] { return are_all_cancelled(batch); });
    scheduler_.launched(batch);
    count_launched(batch);
    launched_.push_back({std::move(batch), tokens});
    return true;
  } catch (const Stopped&) {
    scheduler_.given_up();
    return false;
  }
}

bool GenerationLoop::are_all_cancelled(std::span<const ScheduledSequence> batch) {
  return std::ranges::all_of(batch, [&](const ScheduledSequence& scheduled) {
    return is_cancelled(*scheduled.request->generation);
  });
}

bool GenerationLoop::is_cancelled(Generation& generation) {
  try {
    return generation.is_cancelled();
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
    generation.cancel();
    return true;
  }
}

void GenerationLoop::count_launched(std::span<const ScheduledSequence> batch) {
  ++counted_.num_steps;
  for (const ScheduledSequence& scheduled : batch) {
    Generation& generation = *scheduled.request->generation;
    const int64_t prompt_tokens = generation.result().prompt_tokens;
    counted_.prompt_tokens_computed +=
        std::max<int64_t>(0, std::min(scheduled.end(), prompt_tokens) - scheduled.begin);
    if (!scheduled.is_first) continue;
    counted_.prompt_tokens_cached += std::min(scheduled.begin, prompt_tokens);
    generation.begin_computing(scheduled.begin);
  }
}

// A callback may end other generations, which takes their sequences out of the step.
void GenerationLoop::collect(const LaunchedStep& step) {
  const std::vector<DrawnToken> tokens = runner_.collect(step.tokens);
  for (const ScheduledSequence& scheduled : step.batch) {
    if (scheduled.request) advance(scheduled);
  }
  auto token = tokens.begin();
  for (const ScheduledSequence& scheduled : step.batch) {
    if (!scheduled.completes) continue;
    const std::span drawn(token, static_cast<size_t>(scheduled.num_draws()));
    if (scheduled.request) take_tokens(scheduled, drawn);
    token += scheduled.num_draws();
  }
}

// Nothing is kept that plain decoding would not have drawn: whoever ends the generation, or cancels
// it, at one of the tokens does not get those behind it.
void GenerationLoop::take_tokens(const ScheduledSequence& scheduled,
                                 std::span<const DrawnToken> tokens) {
  const Request request = *scheduled.request;
  take_token(request, tokens.front());
  if (scheduled.drafts.empty()) return;
  const int64_t num_drafts = std::ssize(scheduled.drafts);
  counted_.drafted_tokens += num_drafts;
  if (scheduled.request) request.generation->count_drafts(num_drafts);
  const auto goes_on = [&] {
    bool is_cancelled = false;
    guard(request, [&] { is_cancelled = request.generation->is_cancelled(); });
    return scheduled.request && !is_cancelled;
  };
  for (size_t i = 0; i < scheduled.drafts.size() && scheduled.request; ++i) {
    if (tokens[i].id != scheduled.drafts[i] || !goes_on()) break;
    ++counted_.accepted_tokens;
    request.generation->count_accepted();
    request.sequence->advance(scheduled.known_end() + static_cast<int64_t>(i) + 1);
    take_token(request, tokens[i + 1]);
  }
  if (scheduled.request) request.sequence->drop_drafts();
}

void GenerationLoop::advance(const ScheduledSequence& scheduled) {
  const Request request = *scheduled.request;
  request.sequence->advance(scheduled.known_end());
  guard(request, [&] { request.generation->advance(scheduled.known_end() - scheduled.begin); });
}

void GenerationLoop::take_token(const Request& request, const DrawnToken& token) {
  Sequence& sequence = *request.sequence;
  if (!token.id) {
    cache_.forget(sequence);
    guard(request, [&] {
      finish(request, StopReason::kNonFiniteLogits,
             concat("non-finite logits at position ", sequence.num_tokens() - 1));
    });
    sequence.release_cache();
    return;
  }
  guard(request, [&] {
    if (!request.generation->append(*token.id, token.logprobs)) return;
    sequence.append(*token.id);
    ++counted_.num_tokens;
  });
  counted_.longest_token_wait_seconds = std::max(counted_.longest_token_wait_seconds,
                                                 request.generation->result().longest_wait_seconds);
  if (!request.generation->is_finished()) return;
  cache_.add(sequence, sequence.num_cached());
  cache_.publish();
  forget(sequence);
}

void GenerationLoop::forget(Sequence& sequence) {
  if (!sequence.arrival()) return;
  const bool was_running = sequence.is_running();
  scheduler_.remove(sequence);
  for (LaunchedStep& step : launched_) step.forget(sequence);
  const auto cancelled = std::ranges::find(cancelled_, &sequence, &Request::sequence);
  if (cancelled != cancelled_.end()) cancelled_.erase(cancelled);
  sequence.drop_launched();
  const auto found = members_.find(&sequence);
  if (found == members_.end()) return;
  found->second->lookup.reset();
  if (was_running) set_idle(*found->second, true);
}

void GenerationLoop::finish(const Request& request, StopReason reason, std::string error) {
  forget(*request.sequence);
  request.generation->finish(reason, std::move(error));
}

ServingStatistics GenerationLoop::statistics() const {
  ServingStatistics statistics = counted_;
  statistics.num_running = scheduler_.num_running();
  statistics.num_waiting = scheduler_.num_waiting();
  statistics.num_pages = pool_.num_pages();
  statistics.held_pages = pool_.num_pages() - pool_.num_free_pages();
  statistics.cached_pages = pool_.num_kept_free_pages();
  statistics.free_pages = pool_.num_free_pages() - statistics.cached_pages;
  statistics.num_preemptions = scheduler_.num_preemptions();
  return statistics;
}

}  // namespace tessera
