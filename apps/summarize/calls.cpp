#include "apps/summarize/calls.h"

#include <algorithm>

#include "apps/process/signals.h"
#include "apps/terminal/progress_bar.h"
#include "apps/terminal/remaining_time.h"

namespace tessera {
namespace {

class Calls {
 public:
  Calls(Engine& engine, std::span<const std::vector<TokenId>> prompts, const SamplingParams& params)
      : engine_(engine), prompts_(prompts), answer_tokens_(reserved_tokens(params)) {
    for (const std::vector<TokenId>& prompt : prompts) {
      sequences_.push_back(engine.create_sequence());
      engine.submit(*sequences_.back(), prompt, params, {.is_cancelled = is_interrupted});
    }
  }

  void show(ProgressBar& bar) const {
    if (!bar.is_due()) return;
    const double done = fraction();
    const auto num_finished = std::ranges::count_if(
        sequences_, [this](const auto& sequence) { return engine_.is_finished(*sequence); });
    bar.update(done, concat(num_finished, '/', counted(sequences_.size(), "call"), ", ETA ",
                            time_.text(done)));
  }

  std::vector<GenerationResult> results() const {
    std::vector<GenerationResult> results;
    for (const SequencePtr& sequence : sequences_) results.push_back(engine_.result(*sequence));
    return results;
  }

 private:
  // Of the tokens of all prompts and answers; an answer that has ended counts as a whole one.
  double fraction() const {
    int64_t done = 0;
    int64_t all = 0;
    for (size_t index = 0; index < sequences_.size(); ++index) {
      const int64_t own = static_cast<int64_t>(prompts_[index].size()) + answer_tokens_;
      const GenerationResult& result = engine_.result(*sequences_[index]);
      all += own;
      done += engine_.is_finished(*sequences_[index])
                  ? own
                  : result.cached_prompt_tokens + result.computed_prompt_tokens +
                        static_cast<int64_t>(result.tokens.size());
    }
    return static_cast<double>(done) / static_cast<double>(std::max<int64_t>(all, 1));
  }

  Engine& engine_;
  std::span<const std::vector<TokenId>> prompts_;
  int64_t answer_tokens_;
  std::vector<SequencePtr> sequences_;
  RemainingTime time_;
};

}  // namespace

std::vector<GenerationResult> run_calls(Engine& engine,
                                        std::span<const std::vector<TokenId>> prompts,
                                        const SamplingParams& params, const std::string& label,
                                        const Console& console) {
  ProgressBar bar(console, label);
  const Calls calls(engine, prompts, params);
  while (engine.step()) calls.show(bar);
  bar.clear();
  return calls.results();
}

}  // namespace tessera
