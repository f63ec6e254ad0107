#include "apps/answer/answer.h"

#include <spdlog/spdlog.h>

#include "apps/answer/load_report.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"

namespace tessera {

std::function<void(uint64_t, uint64_t)> interruptible(ProgressBar& bar) {
  return [&bar](uint64_t done_bytes, uint64_t total_bytes) {
    throw_if_interrupted();
    bar.update_bytes(done_bytes, total_bytes);
  };
}

std::unique_ptr<Engine> load_engine(const EngineOptions& options, const Console& console) {
  ProgressBar bar(console, "loading");
  return Engine::load(options, interruptible(bar));
}

GenerationResult stream_answer(Engine& engine, Sequence& sequence, std::span<const TokenId> prompt,
                               const SamplingParams& params, LineBreaks breaks,
                               const Console& console) {
  ProgressBar bar(console, "reading the prompt");
  AnswerPrinter printer(breaks);
  GenerationCallbacks callbacks;
  callbacks.on_prefill = [&bar](int64_t done, int64_t total) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    bar.update(fraction, concat(done, '/', total, " tokens"));
  };
  callbacks.on_text = [&](std::string_view text) {
    if (!text.empty()) bar.clear();
    printer.write(text);
  };
  callbacks.is_cancelled = is_interrupted;

  GenerationResult result = engine.generate(sequence, prompt, params, callbacks);
  bar.clear();
  printer.finish();
  if (result.stop_reason == StopReason::kNonFiniteLogits) throw Error(result.error);
  if (result.stop_reason == StopReason::kContextFull) {
    console.say(concat("the answer was cut: the context is full (",
                       counted(engine.context_size(), "token"), ", of which the prompt took ",
                       result.prompt_tokens, ")"));
  }
  return result;
}

void answer_once(Engine& engine, const EngineOptions& options, std::span<const TokenId> prompt,
                 const SamplingParams& params, const StatsFile& stats, const Console& console) {
  const SequencePtr sequence = engine.create_sequence();
  const GenerationResult result =
      stream_answer(engine, *sequence, prompt, params, LineBreaks::kAsGenerated, console);
  console.say_dim(stats_line(engine, result, params));
  nlohmann::ordered_json object = stats_json(engine, options, result, params);
  object["first_token_seconds"] = nullptr;
  if (result.is_prompt_computed()) {
    const FirstToken first = first_token(engine, result);
    spdlog::info("first token: {}", first.text());
    object["first_token_seconds"] = first.total_seconds;
  }
  stats.write(object);
  throw_if_interrupted();
}

}  // namespace tessera
