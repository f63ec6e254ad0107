#include "apps/summarize/calls.h"

#include <algorithm>
#include <utility>

#include "apps/process/signals.h"
#include "apps/terminal/progress_bar.h"
#include "apps/terminal/remaining_time.h"

namespace tessera {
namespace {

// So many times the sequences that run together are in the engine's hands: whenever one ends,
// another waits. Not all, as the engine looks through those that it has at every step.
constexpr int64_t kHeldTimesRunning = 2;

class Calls {
 public:
  Calls(Engine& engine, std::span<const std::vector<TokenId>> prompts, const SamplingParams& params)
      : engine_(engine), prompts_(prompts), params_(params) {
    for (const std::vector<TokenId>& prompt : prompts) {
      require_room(prompt);
      // What a signal leaves undone.
      results_.push_back(
          {.stop_reason = StopReason::kCancelled, .prompt_tokens = std::ssize(prompt)});
      all_tokens_ += whole_tokens(results_.size() - 1);
    }
  }

  // False when all have ended.
  bool step() {
    submit_more();
    if (held_.empty()) return false;
    engine_.step();
    take_finished();
    return true;
  }

  void show(ProgressBar& bar) const {
    if (!bar.is_due()) return;
    const double done = fraction();
    bar.update(done, concat(num_submitted_ - held_.size(), '/', counted(prompts_.size(), "call"),
                            ", ETA ", time_.text(done)));
  }

  std::vector<GenerationResult> take_results() { return std::move(results_); }

 private:
  struct Call {
    size_t index = 0;  // of its prompt
    SequencePtr sequence;
  };

  // Found before anything is computed, which would be lost.
  void require_room(const std::vector<TokenId>& prompt) const {
    const ContextDemand demand = engine_.context_demand(prompt, params_);
    if (demand.fits()) return;
    throw PromptTooLong(demand.problem(),
                        "a part has more tokens by itself than within its document, as this "
                        "tokenizer changes the text; --chunk-tokens N makes parts shorter");
  }

  void submit_more() {
    const int64_t most = kHeldTimesRunning * engine_.memory_plan().limits.max_sequences;
    while (num_submitted_ < prompts_.size() && std::ssize(held_) < most && !is_interrupted()) {
      held_.push_back({.index = num_submitted_, .sequence = engine_.create_sequence()});
      engine_.submit(*held_.back().sequence, prompts_[num_submitted_], params_,
                     {.is_cancelled = is_interrupted});
      ++num_submitted_;
    }
  }

  void take_finished() {
    std::erase_if(held_, [this](const Call& call) {
      if (!engine_.is_finished(*call.sequence)) return false;
      results_[call.index] = engine_.result(*call.sequence);
      finished_tokens_ += whole_tokens(call.index);
      return true;
    });
  }

  int64_t whole_tokens(size_t index) const {
    return std::ssize(prompts_[index]) + reserved_tokens(params_);
  }

  // Of the tokens of all prompts and answers; an answer that has ended counts as a whole one.
  double fraction() const {
    int64_t done = finished_tokens_;
    for (const Call& call : held_) {
      const GenerationResult& result = engine_.result(*call.sequence);
      done +=
          result.cached_prompt_tokens + result.computed_prompt_tokens + std::ssize(result.tokens);
    }
    return static_cast<double>(done) / static_cast<double>(std::max<int64_t>(all_tokens_, 1));
  }

  Engine& engine_;
  std::span<const std::vector<TokenId>> prompts_;
  const SamplingParams& params_;
  size_t num_submitted_ = 0;
  std::vector<Call> held_;
  std::vector<GenerationResult> results_;
  int64_t all_tokens_ = 0;
  int64_t finished_tokens_ = 0;
  RemainingTime time_;
};

}  // namespace

std::vector<GenerationResult> run_calls(Engine& engine,
                                        std::span<const std::vector<TokenId>> prompts,
                                        const SamplingParams& params, const std::string& label,
                                        const Console& console) {
  ProgressBar bar(console, label);
  Calls calls(engine, prompts, params);
  while (calls.step()) calls.show(bar);
  bar.clear();
  return calls.take_results();
}

}  // namespace tessera
