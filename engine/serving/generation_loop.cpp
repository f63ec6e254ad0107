#include "engine/serving/generation_loop.h"

#include <algorithm>

#include "kernels/tensor/check.h"

namespace tessera {

GenerationLoop::GenerationLoop(StepRunner& runner, PagePool& pool, const Tokenizer& tokenizer,
                               const LoopOptions& options)
    : runner_(runner),
      pool_(pool),
      tokenizer_(tokenizer),
      end_rule_{.stop_tokens = options.stop_tokens, .context_size = options.limits.context_size},
      runs_ahead_(options.runs_ahead),
      scheduler_(options.limits, pool, [this] { return release_oldest_unused_cache(); }) {}

Sequence& GenerationLoop::create_sequence() {
  return members_.emplace_back(new Member{.sequence = Sequence(pool_), .generation = {}})->sequence;
}

void GenerationLoop::destroy(Sequence& sequence) {
  forget(sequence);
  std::erase_if(members_, [&](const auto& member) { return &member->sequence == &sequence; });
}

GenerationLoop::Member& GenerationLoop::member_of(const Sequence& sequence) const {
  const auto found = std::ranges::find_if(
      members_, [&](const auto& member) { return &member->sequence == &sequence; });
  CHECK(found != members_.end(), "the sequence belongs to another engine");
  return **found;
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
  sequence.start(prompt);
  const PromptSize size = {.num_tokens = sequence.num_tokens(),
                           .num_cached = sequence.num_cached()};
  Generation& generation =
      member.generation.emplace(tokenizer_, end_rule_, size, params, callbacks);
  scheduler_.add({.sequence = &sequence,
                  .generation = &generation,
                  .max_length = generation.max_length(),
                  .has_penalty = has_penalty(params)});
}

bool GenerationLoop::step() {
  try {
    return run_step();
  } catch (...) {
    abandon_all();
    throw;
  }
}

// Half a step leaves caches of unknown contents: every generation ends, and what comes is computed
// anew.
void GenerationLoop::abandon_all() {
  launched_.clear();
  for (const auto& member : members_) {
    if (!member->is_generating()) continue;
    scheduler_.remove(member->sequence);
    member->generation->abandon();
    member->sequence.release_cache();
  }
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
  if (runs_ahead_) {
    // The device goes on with this one while the host sees to the tokens of the one before.
    std::vector<ScheduledSequence> next = scheduler_.batch_after(launched_.front().batch);
    if (!next.empty()) launch(std::move(next));
  }
  collect(launched_.front());
  launched_.pop_front();
  return !scheduler_.is_idle();
}

void GenerationLoop::finish_cancelled() {
  std::vector<Request> cancelled;
  for (const auto& member : members_) {
    if (member->is_generating() && member->generation->is_cancelled()) {
      cancelled.push_back({.sequence = &member->sequence, .generation = &*member->generation});
    }
  }
  for (const Request& request : cancelled) finish(request, StopReason::kCancelled);
}

bool GenerationLoop::release_oldest_unused_cache() {
  Member* oldest = nullptr;
  for (const auto& member : members_) {
    const Sequence& sequence = member->sequence;
    if (sequence.block_table().empty() || scheduler_.is_running(sequence)) continue;
    if (oldest == nullptr || sequence.last_used() < oldest->sequence.last_used()) {
      oldest = member.get();
    }
  }
  if (oldest == nullptr) return false;
  oldest->sequence.release_cache();
  if (oldest->is_generating()) oldest->generation->lose_cached_prompt();
  return true;
}

bool GenerationLoop::launch(std::vector<ScheduledSequence> batch) {
  try {
    const LaunchedTokens tokens =
        runner_.launch(chunks_of(batch), [&batch] { return is_cancelled(batch); });
    launched_.push_back({std::move(batch), tokens});
    return true;
  } catch (const Stopped&) {
    return false;
  }
}

// A callback may end other generations, which takes their sequences out of the step.
void GenerationLoop::collect(const LaunchedStep& step) {
  const std::vector<std::optional<TokenId>> tokens = runner_.collect(step.tokens);
  for (const ScheduledSequence& scheduled : step.batch) {
    if (!scheduled.request) continue;
    scheduled.request->sequence->advance(scheduled.num_tokens);
    scheduled.request->generation->advance(scheduled.num_tokens);
  }
  auto token = tokens.begin();
  for (const ScheduledSequence& scheduled : step.batch) {
    if (!scheduled.completes) continue;
    if (scheduled.request) take_token(Request(*scheduled.request), *token);
    ++token;
  }
}

void GenerationLoop::take_token(const Request& request, std::optional<TokenId> token) {
  Sequence& sequence = *request.sequence;
  if (!token) {
    finish(request, StopReason::kNonFiniteLogits,
           concat("non-finite logits at position ", sequence.num_tokens() - 1));
    sequence.release_cache();
    return;
  }
  if (request.generation->append(*token)) sequence.append(*token);
  if (!request.generation->is_finished()) return;
  sequence.release_unused_pages();
  forget(sequence);
}

void GenerationLoop::forget(const Sequence& sequence) {
  scheduler_.remove(sequence);
  for (LaunchedStep& step : launched_) step.forget(sequence);
}

void GenerationLoop::finish(const Request& request, StopReason reason, std::string error) {
  forget(*request.sequence);
  request.generation->finish(reason, std::move(error));
  request.sequence->release_unused_pages();
}

}  // namespace tessera
