#include "apps/batch/batch.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <utility>

#include "apps/answer/answer.h"
#include "apps/answer/kv_input.h"
#include "apps/batch/devices/devices.h"
#include "apps/batch/devices/shard_files.h"
#include "apps/batch/input.h"
#include "apps/batch/manifest.h"
#include "apps/batch/output.h"
#include "apps/batch/resume.h"
#include "apps/batch/run.h"
#include "apps/batch/summary.h"
#include "apps/process/exit_codes.h"
#include "apps/process/signals.h"

namespace tessera {
namespace {

// What a run tells of the engine that answered.
nlohmann::ordered_json statistics_of(const Engine& engine, const EngineOptions& options) {
  nlohmann::ordered_json object = engine_json(engine, options);
  object["max_sequences"] = engine.memory_plan().limits.max_sequences;
  const ServingStatistics statistics = engine.statistics();
  object["drafted_tokens"] = statistics.drafted_tokens;
  object["accepted_tokens"] = statistics.accepted_tokens;
  return object;
}

// What a run tells of the model of answers that were there before.
nlohmann::ordered_json model_without_engine(const EngineOptions& options) {
  return {{"version", TESSERA_VERSION}, {"model", read_model_folder(options).path}};
}

void write_stats(const StatsFile& stats, nlohmann::ordered_json object, const BatchOptions& options,
                 const BatchCounts& counts, const AnswersDigest& digest) {
  add_counts(counts, digest, object);
  if (options.sampling.seed) object["seed"] = *options.sampling.seed;
  if (!options.shard.is_whole()) object["shard"] = options.shard.text();
  stats.write(object);
}

// What answers call the model: its folder's own name, or org/name as it was given.
std::string model_name(const std::string& model) {
  std::error_code problem;
  const std::filesystem::path folder = std::filesystem::canonical(model, problem);
  return problem ? model : folder.filename().string();
}

std::unique_ptr<Engine> load_engine_for(const BatchInput& input, const EngineOptions& options,
                                        const Console& console) {
  std::unique_ptr<Engine> engine = load_engine(options, console);
  // Throws once, here, rather than for every request.
  if (input.has_chats()) engine->chat_template();
  return engine;
}

void tell_interrupt(const BatchOptions& options, bool is_file, int64_t num_begun,
                    const Console& console) {
  std::string line = "interrupted";
  if (num_begun > 0 && pending_signal() == SIGINT) {
    line += concat(": ", counted(num_begun, "request"),
                   " in flight will be finished, Ctrl-C again stops now");
  }
  if (is_file) line += "; the rest with: " + resume_command(options);
  console.say(line);
}

}  // namespace

void refuse_problems(BatchInput& input) {
  for (const BatchItem& item : input.items()) {
    if (!item.is_problem()) continue;
    throw Error(concat(input.name(), ':', item.line_number, ": ",
                       std::get<BatchProblem>(input.read(item)).message, " (", input.num_problems(),
                       " of ", input.items().size(), " requests are bad)"));
  }
}

bool needs_engine(const BatchInput& input, const BatchOutput& output) {
  return std::ranges::any_of(input.items(), [&](const BatchItem& item) {
    return !item.is_problem() && !output.answers().contains(item.id);
  });
}

ExistingOutput existing_output(const BatchOptions& options) {
  if (options.resume) return ExistingOutput::kResume;
  return options.overwrite ? ExistingOutput::kOverwrite : ExistingOutput::kRefuse;
}

int run_batch(BatchOptions& options, const Console& console) {
  if (!options.devices.empty()) return run_on_devices(options, console);
  resolve_sampling(options.sampling, {});
  require_separate_files(options);
  const auto kv = open_kv_option(options.kv_path, options.engine);
  const Conversation opening =
      kv ? kv->opening : Conversation(system_messages(options.prompt, console));
  const bool has_own_seed = options.sampling.seed.has_value();
  const StatsFile stats(options.stats_path);
  say_how_typing_ends(options.input_path, console);
  BatchInput input(options.input_path, options.shard);
  if (options.strict) refuse_problems(input);
  BatchOutput output(options.output_path, existing_output(options));
  if (!options.force) require_same_requests(input, options.shard, output, console);

  // Answers that are there are of these settings, whether or not others are to join them.
  BatchManifest manifest(options.output_path);
  const bool has_work = needs_engine(input, output);
  const bool has_settings = has_work || !output.answers().requests.empty();
  nlohmann::json settings;
  if (has_settings) settings = settle_settings(options, opening, output, manifest);
  if (has_work && output.is_file()) require_no_other_shards(options, {});

  // What is there is changed only when nothing more can refuse the run.
  std::unique_ptr<Engine> engine;
  if (has_work) engine = load_engine_for(input, options.engine, console);
  if (engine && kv) load_kv(*engine, kv->file, console);
  output.begin(console);
  if (options.overwrite) remove_shards(find_shard_outputs(options.output_path));
  if (engine && output.is_file()) manifest.write(settings);
  const auto on_interrupt = [&](int64_t num_begun) {
    tell_interrupt(options, output.is_file(), num_begun, console);
  };
  BatchRun run(engine.get(), {input, output},
               {model_name(options.engine.model), opening, options.kv_path, options.sampling,
                options.on_overflow},
               on_interrupt, console);
  const BatchCounts counts = run.run();
  if (counts.errors > 0) {
    console.say(concat("first error, in line ", counts.first_error_line, ": ",
                       printable(counts.first_error)));
  }
  const auto chosen_seed = has_own_seed ? std::nullopt : options.sampling.seed;
  console.say(summary_line(counts, chosen_seed, output.digest()));
  nlohmann::ordered_json about;
  if (has_settings) {
    about = engine ? statistics_of(*engine, options.engine) : model_without_engine(options.engine);
  }
  write_stats(stats, std::move(about), options, counts, output.digest());
  if (counts.done() < counts.total) throw_if_interrupted();
  return counts.errors > 0 ? kExitItemErrors : kExitOk;
}

}  // namespace tessera
