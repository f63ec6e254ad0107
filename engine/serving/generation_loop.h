// Generating for many sequences at once, step by step: what is scheduled is launched, its tokens
// are collected and handed to the generations, whose callbacks run on the calling thread.
//
// Where that helps, the device is given the next step before the host takes the tokens of the one
// before. What such a step computes for a sequence whose generation has ended meanwhile is dropped.
#pragma once

#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/model/step_runner.h"
#include "engine/serving/generation.h"
#include "engine/serving/launched_step.h"
#include "engine/serving/prefix_cache.h"
#include "engine/serving/prompt_lookup.h"
#include "engine/serving/scheduler.h"
#include "engine/serving/sequence.h"
#include "engine/serving/serving_statistics.h"

namespace tessera {

struct LoopOptions {
  StepLimits limits;
  std::vector<TokenId> stop_tokens;  // that end an answer
  bool runs_ahead = false;           // launches a step before the tokens of the last are known
  bool prefix_cache = false;         // sequences share pages of the same tokens
  DraftCosts draft_costs = {};       // where limits.max_drafted_tokens asks for drafts
};

class GenerationLoop {
 public:
  // Keeps references: all must outlive the loop.
  GenerationLoop(StepRunner& runner, PagePool& pool, const Tokenizer& tokenizer,
                 const LoopOptions& options);
  GenerationLoop(const GenerationLoop&) = delete;
  GenerationLoop& operator=(const GenerationLoop&) = delete;

  // Sequences live until they are destroyed, or with the loop. A generation ends without a word
  // when its sequence is destroyed, which a callback may do.
  Sequence& create_sequence();
  void destroy(Sequence& sequence);

  // Queues a generation after `prompt`, which fits the context and replaces what the sequence
  // holds. The sequence is not generating. Throws Error when all pages together are too few for the
  // prompt.
  void submit(Sequence& sequence, std::span<const TokenId> prompt, const SamplingParams& params,
              const GenerationCallbacks& callbacks);

  // Makes pages of tokens that have been computed elsewhere: fill() writes the keys and values of
  // `tokens`, which fill whole pages, to the pages that it is given. From then on prompts that
  // begin with these tokens find the pages, until they are needed for others. Idle sequences lose
  // their caches where pages are missing. Throws Error when running ones leave too few, and what
  // fill throws.
  using FillPages = std::function<void(std::span<const int32_t> pages)>;
  void restore(std::span<const TokenId> tokens, const FillPages& fill);
  bool has_prefix_cache() const { return cache_.is_on(); }
  // The pages of the prompt's beginning that the cache has: whole pages, without the last token.
  BlockTable cached_pages(std::span<const TokenId> prompt) const {
    return cache_.find(prompt).pages;
  }

  // The next step() ends the sequence's generation, if it has one, as is_cancelled would.
  void cancel(const Sequence& sequence);
  // Ends the sequence's generation at once and without a word, if it has one.
  void abandon(Sequence& sequence);

  // Computes what is waiting and running by one step. False when nothing is left to do.
  //
  // What a callback throws ends its own generation, and is thrown from here once the step is over:
  // all others go on with the next call. What the runner throws ends every generation, and the
  // caches are given up. Throws Error when a callback calls it.
  bool step();

  // The generation that runs on the sequence or ran last; nullptr before the first.
  const Generation* generation(const Sequence& sequence) const;
  bool is_generating(const Sequence& sequence) const;

  ServingStatistics statistics() const;

  // Frees the pages of the sequence that has not generated for longest; false when none has any.
  bool release_oldest_unused_cache();

 private:
  struct Member {
    Sequence sequence;
    std::optional<Generation> generation;
    std::optional<PromptLookup> lookup = {};
    bool is_idle = false;  // which of the two lists it is in
    std::list<Sequence*>::iterator place = {};
    std::unique_ptr<Member> next_destroyed = nullptr;

    bool is_generating() const { return generation && !generation->is_finished(); }
  };

  Member& member_of(const Sequence& sequence) const;
  // Puts the member at the end of idle_ or of others_.
  void set_idle(Member& member, bool is_idle);
  bool run_step();
  void end_step();
  void abandon_all();
  void finish_cancelled();
  // Gives the step to the device. False when all its sequences were cancelled meanwhile: the step
  // is given up, and as no sequence has advanced, it is as if it had never begun.
  bool launch(std::vector<ScheduledSequence> batch);
  // Asks all of a step that is being launched.
  bool are_all_cancelled(std::span<const ScheduledSequence> batch);
  // Asks. Whose question throws is cancelled.
  bool is_cancelled(Generation& generation);
  void count_launched(std::span<const ScheduledSequence> batch);
  // Waits for the step and appends what it drew.
  void collect(const LaunchedStep& step);
  void advance(const ScheduledSequence& scheduled);
  // Takes what a step drew behind the sequence's newest token and behind its drafts, up to the
  // first draft that is another token.
  void take_tokens(const ScheduledSequence& scheduled, std::span<const DrawnToken> tokens);
  void take_token(const Request& request, const DrawnToken& token);
  // Makes the drafts of the member's generation, if it can have any: a draw with penalties or
  // barred tokens has to know all tokens before it.
  PromptLookup* make_lookup(Member& member, const SamplingParams& params);
  void finish(const Request& request, StopReason reason, std::string error = {});
  // Takes the sequence out of all that goes on, if it is scheduled. What launched steps compute for
  // it is dropped: nobody takes the token that they draw. Its pages may have other owners at once:
  // the steps of these run after those launched.
  void forget(Sequence& sequence);
  // Runs an action that calls back for a generation. The generation ends if that throws.
  template <typename Action>
  void guard(const Request& request, Action action);

  StepRunner& runner_;
  PagePool& pool_;
  const Tokenizer& tokenizer_;
  EndRule end_rule_;
  bool runs_ahead_;
  bool has_drafts_;
  DraftCosts draft_costs_;
  PrefixCache cache_;
  std::unordered_map<const Sequence*, std::unique_ptr<Member>> members_;
  // The sequences. All that have pages and do not run are idle, the one that was used longest ago
  // first. There may be some among them that run by now, or that have no pages. A sequence only
  // changes lists, so that becoming idle takes no memory and cannot fail.
  std::list<Sequence*> idle_;
  std::list<Sequence*> others_;
  bool is_stepping_ = false;
  // By callbacks of the step that runs, which may be at work for them: a chain, so that destroying
  // takes no memory and cannot fail.
  std::unique_ptr<Member> destroyed_;
  Scheduler scheduler_;
  // Oldest first: one at most between calls of step(), two while the older is collected.
  std::deque<LaunchedStep> launched_;
  std::deque<Request> cancelled_;  // and not ended yet; empty between calls of step()
  std::exception_ptr thrown_;      // by a callback, the first of a step
  ServingStatistics counted_;      // what is counted since the loop began
};

}  // namespace tessera
