#include "apps/summarize/kv_summary.h"

#include <memory>

#include "apps/answer/answer.h"
#include "apps/answer/kv_input.h"
#include "apps/process/exit_codes.h"

namespace tessera {

int summarize_kv(const SummarizeOptions& options, const Console& console) {
  const KvInput kv = open_kv(options.kv_path, options.engine);
  resolve_sampling(options.sampling, {});
  const StatsFile stats(options.stats_path);

  const std::unique_ptr<Engine> engine = load_engine(options.engine, console);
  const SamplingParams params = resolve_sampling(options.sampling, engine->default_sampling());
  const Message instruction = {Role::kUser, options.instruction.text()};
  ProgressBar bar(console, "tokenising");
  const FittedPrompt prompt = {
      .tokens = engine->encode_chat(kv.opening.continued({&instruction, 1}),
                                    thinking_inputs(*engine, options.thinking.thinks, console),
                                    interruptible(bar)),
      .left_out = {}};
  bar.clear();
  load_kv(*engine, kv.file, console);
  const AnswerStyle style = {.shows_thinking = options.thinking.is_shown};
  answer_once(*engine, options.engine, prompt, params, style, stats, console);
  return kExitOk;
}

}  // namespace tessera
