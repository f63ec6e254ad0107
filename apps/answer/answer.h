// From loaded flags to an answer on standard output: what chat, generate and summarize share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "apps/answer/answer_printer.h"
#include "apps/answer/overflow.h"
#include "apps/answer/stats.h"
#include "apps/options/sampling_options.h"
#include "apps/terminal/console.h"
#include "apps/terminal/progress_bar.h"
#include "engine/engine.h"

namespace tessera {

// For long work: shows in `bar` how many bytes are done, and ends the work with Interrupted.
std::function<void(uint64_t done_bytes, uint64_t total_bytes)> interruptible(ProgressBar& bar);

// Loads the model with a progress bar. Throws Error, or Interrupted on Ctrl-C.
std::unique_ptr<Engine> load_engine(const EngineOptions& options, const Console& console);

// Says that a seed was given where nothing is drawn.
void tell_unused_seed(const SamplingOptions& options, const Engine& engine, const Console& console);

// What asks the chat template for thinking or for none; nothing where `thinks` says neither or the
// template has no such switch.
ChatInputs thinking_inputs(const ChatTemplate& chat_template, std::optional<bool> thinks);

// The same for the engine's template, with a line that says so where it has no such switch.
ChatInputs thinking_inputs(const Engine& engine, std::optional<bool> thinks,
                           const Console& console);

struct Answer {
  GenerationResult result;
  ThoughtAndAnswer text;  // its text in parts; all of it is the answer where thinking is no part
};

// Generates with a progress bar while the prompt is long in coming, the text on standard output
// and a final newline. Stops at a signal, which stays pending. Says so when the context is full or
// the answer was cut before it began. Throws Error when the model yields NaN or infinity.
Answer stream_answer(Engine& engine, Sequence& sequence, std::span<const TokenId> prompt,
                     const SamplingParams& params, const AnswerStyle& style,
                     const Console& console);

// What an answer cost: a line for people, an object for programs, which has `left_out` unless that
// is empty.
void tell_answer_cost(const Engine& engine, const EngineOptions& options,
                      const GenerationResult& result, const SamplingParams& params,
                      const nlohmann::ordered_json& left_out, const StatsFile& stats,
                      const Console& console);

// The one answer of a program that gives one: says what of the prompt was left out, streams the
// answer and tells what it cost. Where a signal cut it short, that is what was computed until then;
// then throws Interrupted.
Answer answer_once(Engine& engine, const EngineOptions& options, const FittedPrompt& prompt,
                   const SamplingParams& params, const AnswerStyle& style, const StatsFile& stats,
                   const Console& console);

}  // namespace tessera
