// tessera batch: a file of requests in, a file of answers out.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "apps/answer/answer.h"
#include "apps/batch/input.h"
#include "apps/batch/manifest.h"
#include "apps/batch/options.h"
#include "apps/batch/output.h"
#include "apps/batch/resume.h"
#include "apps/batch/run.h"
#include "apps/options/commands.h"
#include "apps/options/template_options.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

void say_summary(const BatchCounts& counts, const Console& console) {
  std::string line = concat(counted(counts.total, "request"), ": ", counts.answered, " answered, ",
                            counted(counts.errors, "error"));
  if (counts.skipped > 0) line += concat(", ", counts.skipped, " answered before");
  if (counts.done() < counts.total) line += concat(", ", counts.total - counts.done(), " to do");
  line += concat(" | prompt ", counts.prompt_tokens, " tok | gen ", counts.generated_tokens,
                 " tok | ", fixed(counts.seconds, 1), " s");
  console.say(line);
}

void write_stats(const StatsFile& stats, const Engine* engine, const BatchOptions& options,
                 const BatchCounts& counts) {
  nlohmann::ordered_json object;
  if (engine != nullptr) object = engine_json(*engine, options.engine);
  object["requests"] = counts.total;
  object["skipped"] = counts.skipped;
  object["answered"] = counts.answered;
  object["errors"] = counts.errors;
  object["prompt_tokens"] = counts.prompt_tokens;
  object["completion_tokens"] = counts.generated_tokens;
  object["seconds"] = counts.seconds;
  if (options.sampling.seed) object["seed"] = *options.sampling.seed;
  stats.write(object);
}

// What answers call the model: its folder's own name, or org/name as it was given.
std::string model_name(const std::string& model) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::canonical(model, problem);
  return problem ? model : folder.filename().string();
}

void refuse_problems(BatchInput& input) {
  for (const BatchItem& item : input.items()) {
    if (!item.is_problem()) continue;
    throw Error(concat(input.name(), ':', item.line_number, ": ",
                       std::get<BatchProblem>(input.read(item)).message, " (", input.num_problems(),
                       " of ", input.items().size(), " requests are bad)"));
  }
}

ExistingOutput existing_output(const BatchOptions& options) {
  if (options.resume) return ExistingOutput::kResume;
  return options.overwrite ? ExistingOutput::kOverwrite : ExistingOutput::kRefuse;
}

// No model is needed when every request has been answered or cannot be.
bool needs_engine(const BatchInput& input, const BatchOutput& output) {
  return std::ranges::any_of(input.items(), [&](const BatchItem& item) {
    return !item.is_problem() && !output.answers().contains(item.custom_id);
  });
}

std::unique_ptr<Engine> load_chat_engine(const EngineOptions& options, const Console& console) {
  std::unique_ptr<Engine> engine = load_engine(options, console);
  engine->chat_template();  // throws once, here, rather than for every request
  return engine;
}

int run_batch(BatchOptions& options, const Console& console) {
  resolve_sampling(options.sampling, {});
  require_separate_files(options);
  const std::vector<Message> system = system_messages(options.prompt);
  const StatsFile stats(options.stats_path);
  BatchInput input(options.input_path);
  if (options.strict) refuse_problems(input);
  BatchOutput output(options.output_path, existing_output(options));
  if (!options.force) require_same_requests(input, output, console);

  // What is there is changed only when nothing more can refuse the run.
  std::unique_ptr<Engine> engine;
  if (needs_engine(input, output)) {
    BatchManifest manifest(options.output_path);
    const auto settings = settle_settings(options, system, output, manifest);
    engine = load_chat_engine(options.engine, console);
    output.begin(console);
    if (output.is_file()) manifest.write(settings);
  } else {
    output.begin(console);
  }
  BatchRun run({model_name(options.engine.model), system, options.sampling}, console);
  const BatchCounts counts = run.run(engine.get(), input, output);
  say_summary(counts, console);
  write_stats(stats, engine.get(), options, counts);
  if (counts.done() < counts.total) {
    console.say(output.is_file() ? "interrupted; the rest with: " + resume_command(options)
                                 : "interrupted");
    throw_if_interrupted();
  }
  return counts.errors > 0 ? kExitItemErrors : kExitOk;
}

}  // namespace

void add_batch(CLI::App& app, Invocation& invocation) {
  constexpr const char* kGroup = "Files";
  auto options = std::make_shared<BatchOptions>();
  CLI::App& command = *app.add_subcommand("batch", "answer a file of requests");
  command
      .add_option("-i,--input-file,--input", options->input_path,
                  "requests, one JSON a line; - for stdin")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  command
      .add_option("-o,--output-file,--output", options->output_path,
                  "answers, one JSON a line; - for stdout")
      ->option_text("FILE")
      ->required()
      ->group(kGroup);
  CLI::Option* resume = command.add_flag("--resume", options->resume,
                                         "keep the answers that are there and do the rest");
  resume->group(kGroup);
  command.add_flag("--overwrite", options->overwrite, "replace the answers that are there")
      ->excludes(resume)
      ->group(kGroup);
  command
      .add_flag("--force", options->force,
                "resume although the model, a setting or a request has changed")
      ->needs(resume)
      ->group(kGroup);
  command.add_flag("--strict", options->strict, "do nothing when any request is bad")
      ->group(kGroup);
  add_system_options(command, options->prompt);
  add_sampling_options(command, options->sampling);
  add_model_options(command, options->engine);
  add_template_option(command, options->engine);
  add_console_options(command, invocation.console);
  add_stats_option(command, options->stats_path);
  command.footer(
      "A request is a line of OpenAI's batch form or of a short one:\n"
      "  {\"custom_id\": \"a\", \"method\": \"POST\", \"url\": \"/v1/chat/completions\",\n"
      "   \"body\": {\"messages\": [{\"role\": \"user\", \"content\": \"Hi\"}]}}\n"
      "  {\"id\": \"a\", \"prompt\": \"Hi\", \"max_tokens\": 64}\n"
      "Its values win over the flags; --system is for requests without a system message. A body\n"
      "may have tools, and variables of the chat template in chat_template_kwargs. What a model\n"
      "thinks before it answers comes as reasoning_content beside content. Every answer is on the\n"
      "disk before the next begins: a run that was stopped goes on with --resume. It must share\n"
      "the model, the seed and the other settings, which are kept in OUTPUT.manifest.json. Exit\n"
      "code 3 says that some requests have an error instead of an answer.\n"
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
