#include "apps/answer/answer.h"

#include <spdlog/spdlog.h>

#include "apps/answer/load_report.h"
#include "apps/process/signals.h"
#include "apps/terminal/output.h"
#include "apps/terminal/remaining_time.h"

namespace tessera {
namespace {

constexpr const char* kThinkingSwitch = "enable_thinking";

// Shows an answer and keeps its parts.
class AnswerStream {
 public:
  AnswerStream(const AnswerStyle& style, const ThinkingStart& start, const Console& console)
      : has_thinking_(style.has_thinking), splitter_(start), printer_(style, console) {}

  void append(std::string_view text) {
    take(has_thinking_ ? splitter_.append(text)
                       : ThoughtAndAnswer{.thinking = "", .answer = std::string(text)});
  }
  ThoughtAndAnswer finish() {
    take(splitter_.finish());
    printer_.finish();
    return std::move(text_);
  }

 private:
  void take(const ThoughtAndAnswer& more) {
    printer_.write_thinking(more.thinking);
    printer_.write(more.answer);
    text_.thinking += more.thinking;
    text_.answer += more.answer;
  }

  bool has_thinking_;
  ThinkingSplitter splitter_;
  AnswerPrinter printer_;
  ThoughtAndAnswer text_;
};

void say_what_was_cut(const Answer& answer, const Engine& engine, const Console& console) {
  const StopReason reason = answer.result.stop_reason;
  if (reason == StopReason::kContextFull) {
    console.say(concat("the answer was cut: the context is full (",
                       counted(engine.context_size(), "token"), ", of which the prompt took ",
                       answer.result.prompt_tokens, ")"));
  }
  const bool was_stopped = reason == StopReason::kCancelled;  // which is said elsewhere
  if (!was_stopped && answer.text.answer.empty() && !answer.text.thinking.empty()) {
    console.say("the model was still thinking: there is no answer");
  }
}

}  // namespace

std::function<void(uint64_t, uint64_t)> interruptible(ProgressBar& bar) {
  return [&bar](uint64_t done_bytes, uint64_t total_bytes) {
    throw_if_interrupted();
    bar.update_bytes(done_bytes, total_bytes);
  };
}

std::unique_ptr<Engine> load_engine(const EngineOptions& options, const Console& console) {
  ProgressBar bar(console, "loading");
  std::unique_ptr<Engine> engine = Engine::load(options, interruptible(bar));
  bar.clear();
  if (engine->device() == DeviceType::kCpu && options.compute_dtype == DType::kFloat16) {
    console.say("warning: --dtype float16 has no effect on a CPU, which computes in float32");
  }
  return engine;
}

void tell_unused_seed(const SamplingOptions& options, const Engine& engine,
                      const Console& console) {
  const double temperature = options.temperature.value_or(engine.default_sampling().temperature);
  if (!options.seed || temperature != 0.0) return;
  console.say("warning: --seed has no effect: at temperature 0 the likeliest token is taken");
}

ChatInputs thinking_inputs(const ChatTemplate& chat_template, std::optional<bool> thinks) {
  if (!thinks || !chat_template.mentions(kThinkingSwitch)) return {};
  return {.arguments = {{kThinkingSwitch, *thinks ? "true" : "false"}}};
}

ChatInputs thinking_inputs(const Engine& engine, std::optional<bool> thinks,
                           const Console& console) {
  if (!thinks) return {};
  ChatInputs inputs = thinking_inputs(engine.chat_template(), thinks);
  if (inputs.arguments.empty()) {
    console.say(
        concat("the model's chat template has no switch for thinking (", kThinkingSwitch, ")"));
  }
  return inputs;
}

Answer stream_answer(Engine& engine, Sequence& sequence, std::span<const TokenId> prompt,
                     const SamplingParams& params, const AnswerStyle& style,
                     const Console& console) {
  ProgressBar bar(console, "reading the prompt");
  AnswerStream stream(
      style, style.has_thinking ? thinking_start(engine.tokenizer(), prompt) : ThinkingStart{},
      console);
  GenerationCallbacks callbacks;
  const RemainingTime time;
  callbacks.on_prefill = [&bar, &time](int64_t done, int64_t total) {
    const double fraction = static_cast<double>(done) / static_cast<double>(total);
    bar.update(fraction, concat(done, '/', total, " tokens, ETA ", time.text(fraction)));
  };
  callbacks.on_text = [&](std::string_view text) {
    bar.clear();
    stream.append(text);
  };
  callbacks.is_cancelled = is_interrupted;

  Answer answer = {.result = engine.generate(sequence, prompt, params, callbacks), .text = {}};
  bar.clear();
  answer.text = stream.finish();
  if (answer.result.stop_reason == StopReason::kNonFiniteLogits) throw Error(answer.result.error);
  say_what_was_cut(answer, engine, console);
  return answer;
}

void tell_answer_cost(const Engine& engine, const EngineOptions& options,
                      const GenerationResult& result, const SamplingParams& params,
                      const nlohmann::ordered_json& left_out, const StatsFile& stats,
                      const Console& console) {
  console.say_dim(stats_line(engine, result, params));
  nlohmann::ordered_json object = stats_json(engine, options, result, params);
  if (!left_out.empty()) object["left_out"] = left_out;
  object["first_token_seconds"] = nullptr;
  if (result.is_prompt_computed()) {
    const FirstToken first = first_token(engine, result);
    spdlog::info("first token: {}", first.text());
    object["first_token_seconds"] = first.total_seconds;
  }
  stats.write(object);
}

Answer answer_once(Engine& engine, const EngineOptions& options, const FittedPrompt& prompt,
                   const SamplingParams& params, const AnswerStyle& style, const StatsFile& stats,
                   const Console& console) {
  if (!prompt.left_out.ranges.empty()) console.say(prompt.left_out.text());
  const SequencePtr sequence = engine.create_sequence();
  Answer answer = stream_answer(engine, *sequence, prompt.tokens, params, style, console);
  tell_answer_cost(engine, options, answer.result, params, left_out_json(prompt.left_out), stats,
                   console);
  throw_if_interrupted();
  return answer;
}

}  // namespace tessera
