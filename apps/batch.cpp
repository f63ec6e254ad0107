// tessera batch: a file of requests in, a file of answers out.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "apps/answer.h"
#include "apps/batch_input.h"
#include "apps/batch_output.h"
#include "apps/batch_record.h"
#include "apps/commands.h"
#include "apps/common_options.h"
#include "apps/exit_codes.h"
#include "apps/human_units.h"
#include "apps/progress_bar.h"
#include "apps/signals.h"

namespace tessera {
namespace {

struct BatchOptions {
  EngineOptions engine;
  SamplingOptions sampling;
  PromptOptions prompt;
  std::string input_path;
  std::string output_path;
  bool resume = false;
  bool overwrite = false;
  bool strict = false;
  std::string stats_path;
  std::vector<std::string> arguments;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How many requests ended how, in this run.
struct BatchCounts {
  int64_t total = 0;    // in the input
  int64_t skipped = 0;  // answered by an earlier run
  int64_t answered = 0;
  int64_t errors = 0;
  int64_t prompt_tokens = 0;
  int64_t generated_tokens = 0;

  int64_t done() const { return skipped + answered + errors; }
};

class BatchRun {
 public:
  BatchRun(const BatchOptions& options, const Console& console)
      : options_(options),
        console_(console),
        bar_(console, "batch"),
        system_(system_messages(options.prompt)),
        model_(model_name()) {}

  // Answers what is not answered yet. Returns early at a signal, which stays pending.
  BatchCounts run(Engine* engine, BatchInput& input, BatchOutput& output) {
    counts_.total = static_cast<int64_t>(input.items().size());
    counts_.skipped =
        std::count_if(input.items().begin(), input.items().end(), [&output](const BatchItem& item) {
          return output.answered_ids().contains(item.custom_id);
        });
    start_ = Clock::now();
    for (const BatchItem& item : input.items()) {
      if (output.answered_ids().contains(item.custom_id)) continue;
      if (item.problem) {
        output.append(failed(item, item.problem->code, item.problem->message));
      } else if (const auto record = answer(*engine, item, input.read(item))) {
        output.append(*record);
      }
      if (pending_signal() != 0) break;
    }
    bar_.clear();
    return counts_;
  }

 private:
  using Json = BatchOutput::Json;

  std::string model_name() const {
    const std::filesystem::path path = options_.engine.model;
    if (!std::filesystem::is_directory(path)) return options_.engine.model;
    return std::filesystem::canonical(path).filename().string();
  }

  Json failed(const BatchItem& item, const std::string& code, const std::string& message) {
    ++counts_.errors;
    return error_record(item, code, message);
  }

  // The record of an answer or an error; nothing when a signal cut the answer short.
  std::optional<Json> answer(Engine& engine, const BatchItem& item, BatchRequest request) {
    std::vector<TokenId> prompt;
    try {
      if (!system_.empty() && request.messages.front().role != Role::kSystem) {
        request.messages.insert(request.messages.begin(), system_.front());
      }
      prompt = engine.encode_chat(request.messages);
    } catch (const Error& error) {
      return failed(item, "invalid_prompt", error.what());
    }
    const SamplingParams params =
        resolve_sampling(merged(options_.sampling, request.sampling), engine.default_sampling());
    const ContextDemand demand = context_demand(engine, prompt, params);
    if (!demand.fits()) {
      return failed(item, "context_length_exceeded",
                    concat("prompt ", demand.prompt_tokens, " + reserved ", demand.answer_tokens,
                           " > limit ", demand.context_size, " tokens"));
    }
    return generate(engine, item, prompt, params);
  }

  std::optional<Json> generate(Engine& engine, const BatchItem& item,
                               std::span<const TokenId> prompt, const SamplingParams& params) {
    GenerationCallbacks callbacks;
    callbacks.is_cancelled = [this] {
      show_progress();
      return pending_signal() != 0;
    };
    // A fresh sequence each: what a request is answered must not depend on the one before it.
    const SequencePtr sequence = engine.create_sequence();
    const GenerationResult result = engine.generate(*sequence, prompt, params, callbacks);
    if (result.stop_reason == StopReason::kCancelled) return std::nullopt;
    counts_.prompt_tokens += result.prompt_tokens;
    counts_.generated_tokens += static_cast<int64_t>(result.tokens.size());
    if (result.stop_reason == StopReason::kNonFiniteLogits) {
      return failed(item, "non_finite_logits", result.error);
    }
    ++counts_.answered;
    return answer_record(item, model_, result);
  }

  void show_progress() {
    const double seconds = seconds_since(start_);
    const int64_t done_now = counts_.answered + counts_.errors;
    const auto done = static_cast<double>(counts_.done());
    const auto left = static_cast<double>(counts_.total) - done;
    const std::string eta =
        done_now == 0 ? "?" : human_duration(seconds / static_cast<double>(done_now) * left);
    bar_.update(done / static_cast<double>(counts_.total),
                concat(counts_.done(), '/', counts_.total, " requests, ", counts_.errors,
                       " errors, ", fixed(tokens_per_second(seconds), 1), " tok/s, ETA ", eta));
  }

  double tokens_per_second(double seconds) const {
    return seconds > 0 ? static_cast<double>(counts_.generated_tokens) / seconds : 0.0;
  }

  const BatchOptions& options_;
  const Console& console_;
  ProgressBar bar_;
  std::vector<Message> system_;
  std::string model_;
  BatchCounts counts_;
  Clock::time_point start_;
};

std::string shell_quoted(const std::string& argument) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) return argument;
  std::string quoted = "'";
  for (const char character : argument) {
    if (character == '\'') {
      quoted += "'\\''";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

// The command line that does the rest, with the seed of this run.
std::string resume_command(const BatchOptions& options, bool seed_was_drawn) {
  std::string command;
  for (const std::string& argument : options.arguments) {
    if (argument == "--overwrite" || argument == "--resume") continue;
    command += shell_quoted(argument) + " ";
  }
  if (seed_was_drawn) command += concat("--seed ", *options.sampling.seed, ' ');
  return command + "--resume";
}

void say_summary(const BatchCounts& counts, double seconds, const Console& console) {
  std::string line =
      concat(counts.total, counts.total == 1 ? " request: " : " requests: ", counts.answered,
             " answered, ", counts.errors, " errors");
  if (counts.skipped > 0) line += concat(", ", counts.skipped, " answered before");
  if (counts.done() < counts.total) line += concat(", ", counts.total - counts.done(), " to do");
  line += concat(" | prompt ", counts.prompt_tokens, " tok | gen ", counts.generated_tokens,
                 " tok | ", fixed(seconds, 1), " s");
  console.say(line);
}

void write_stats(const StatsFile& stats, const Engine* engine, const BatchOptions& options,
                 const BatchCounts& counts, double seconds) {
  nlohmann::ordered_json object;
  if (engine != nullptr) object = engine_json(*engine, options.engine);
  object["requests"] = counts.total;
  object["skipped"] = counts.skipped;
  object["answered"] = counts.answered;
  object["errors"] = counts.errors;
  object["prompt_tokens"] = counts.prompt_tokens;
  object["completion_tokens"] = counts.generated_tokens;
  object["seconds"] = seconds;
  object["seed"] = *options.sampling.seed;
  stats.write(object);
}

void refuse_problems(const BatchInput& input) {
  for (const BatchItem& item : input.items()) {
    if (!item.problem) continue;
    throw Error(concat(input.path(), ':', item.line_number, ": ", item.problem->message, " (",
                       input.num_problems(), " of ", input.items().size(), " requests are bad)"));
  }
}

ExistingOutput existing_output(const BatchOptions& options) {
  if (options.resume) return ExistingOutput::kResume;
  return options.overwrite ? ExistingOutput::kOverwrite : ExistingOutput::kRefuse;
}

// No model is needed when every request has been answered or cannot be.
bool needs_engine(const BatchInput& input, const BatchOutput& output) {
  return std::any_of(input.items().begin(), input.items().end(), [&](const BatchItem& item) {
    return !item.problem && !output.answered_ids().contains(item.custom_id);
  });
}

int run_batch(BatchOptions& options, const Console& console) {
  resolve_sampling(options.sampling, {});
  const bool seed_was_drawn = !options.sampling.seed;
  if (seed_was_drawn) options.sampling.seed = random_seed();
  const StatsFile stats(options.stats_path);
  BatchInput input(options.input_path);
  if (options.strict) refuse_problems(input);
  BatchOutput output(options.output_path, options.input_path, existing_output(options), console);
  BatchRun run(options, console);

  std::unique_ptr<Engine> engine;
  if (needs_engine(input, output)) {
    engine = load_engine(options.engine, console);
    engine->chat_template();  // throws once, here, rather than for every request
  }
  const Clock::time_point start = Clock::now();
  const BatchCounts counts = run.run(engine.get(), input, output);
  say_summary(counts, seconds_since(start), console);
  write_stats(stats, engine.get(), options, counts, seconds_since(start));
  if (counts.done() < counts.total) {
    console.say("interrupted; the rest with: " + resume_command(options, seed_was_drawn));
  }
  throw_if_interrupted();
  return counts.errors > 0 ? kExitItemErrors : kExitOk;
}

}  // namespace

void add_batch(CLI::App& app, Invocation& invocation) {
  constexpr const char* kGroup = "Files";
  auto options = std::make_shared<BatchOptions>();
  CLI::App& command = *app.add_subcommand("batch", "answer a file of requests");
  command.add_option("-i,--input-file,--input", options->input_path, "requests, one JSON a line")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  command.add_option("-o,--output-file,--output", options->output_path, "answers, one JSON a line")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  CLI::Option* resume = command.add_flag("--resume", options->resume,
                                         "keep the answers that are there and do the rest");
  resume->group(kGroup);
  command.add_flag("--overwrite", options->overwrite, "replace the answers that are there")
      ->excludes(resume)
      ->group(kGroup);
  command.add_flag("--strict", options->strict, "do nothing when any request is bad")
      ->group(kGroup);
  add_system_options(command, options->prompt);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(
      "A request is a line of OpenAI's batch form or of a short one:\n"
      "  {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\",\n"
      "   \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}}\n"
      "  {\"id\": \"a\", \"prompt\": \"Hi\", \"max_tokens\": 64}\n"
      "Its values win over the flags; --system is for requests without a system message. Every\n"
      "answer is on the disk before the next begins: a run that was stopped goes on with\n"
      "--resume. Exit code 3 says that some requests have an error instead of an answer.\n"
      "\n"
      "Examples:\n"
      "  tessera batch -m weights/demo -i requests.jsonl -o answers.jsonl\n"
      "  tessera batch -m weights/demo -i requests.jsonl -o answers.jsonl --resume");
  command.callback([options, &invocation] {
    require_model(options->engine);
    options->arguments = invocation.arguments;
    invocation.run = [options](const Console& console) { return run_batch(*options, console); };
  });
}

}  // namespace tessera
