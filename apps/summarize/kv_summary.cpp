#include "apps/summarize/kv_summary.h"

#include <algorithm>
#include <memory>
#include <span>

#include "apps/answer/answer.h"
#include "apps/answer/kv_input.h"
#include "apps/process/exit_codes.h"
#include "apps/summarize/cost.h"
#include "apps/summarize/summarizer.h"

namespace tessera {
namespace {

// Where nobody said how long the summary may be, it takes no more room than the document leaves.
SamplingParams params_for(const Engine& engine, const SummarizeOptions& options,
                          std::span<const TokenId> prompt) {
  SamplingParams params = resolve_sampling(summary_sampling(options), engine.default_sampling());
  const int64_t room = engine.context_size() - std::ssize(prompt);
  if (!options.sampling.max_tokens && room > 0) {
    limit_answers(params, std::min(params.max_tokens, room));
  }
  return params;
}

}  // namespace

int summarize_kv(const SummarizeOptions& options, const Console& console) {
  const KvInput kv = *open_kv_option(options.kv_path, options.engine);
  resolve_sampling(options.sampling, {});
  const StatsFile stats(options.stats_path);

  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  tell_unused_seed(options.sampling, *engine, console);
  const Message instruction = {Role::kUser, options.instruction.text()};
  ProgressBar bar(console, "tokenising");
  const FittedPrompt prompt = {
      .tokens = engine->encode_chat(kv.opening.continued({&instruction, 1}),
                                    thinking_inputs(*engine, options.thinking.thinks, console),
                                    interruptible(bar)),
      .left_out = {}};
  bar.clear();
  const SamplingParams params = params_for(*engine, options, prompt.tokens);
  load_kv(*engine, kv.file, console);
  compare_with_kv(prompt.tokens, kv.file, *engine, console);
  const Answer answer = answer_once(*engine, options.engine, prompt, params,
                                    {.shows_thinking = options.thinking.is_shown}, stats, console);
  if (answer.result.stop_reason == StopReason::kMaxTokens) {
    console.say(cut_text(std::ssize(answer.result.tokens)));
  }
  return answer.text.answer.empty() ? kExitItemErrors : kExitOk;
}

}  // namespace tessera
