#include "apps/batch/devices/devices.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "apps/answer/kv_input.h"
#include "apps/answer/stats.h"
#include "apps/batch/batch.h"
#include "apps/batch/devices/merge.h"
#include "apps/batch/devices/shard_files.h"
#include "apps/batch/devices/workers.h"
#include "apps/batch/input.h"
#include "apps/batch/manifest.h"
#include "apps/batch/output.h"
#include "apps/batch/progress.h"
#include "apps/batch/resume.h"
#include "apps/batch/summary.h"
#include "apps/process/exit_codes.h"
#include "apps/process/forced_exit.h"
#include "apps/process/signals.h"

namespace tessera {
namespace {

std::string device_of(const std::string& name) {
  if (name == "cpu") return name;
  const std::optional<int> index = find_gpu(name.starts_with("cuda:") ? name : "cuda:" + name);
  if (!index) {
    throw UsageError(
        refusal("--devices", "numbers of GPUs with commas between them, e.g. 0,1, or cpu", name));
  }
  return concat("cuda:", *index);
}

DeviceChoice device_choice(const std::string& device) {
  return device == "cpu" ? DeviceChoice::kCpu : DeviceChoice::kCuda;
}

// The processes read and write files of their own accord: pipes they could not share.
void require_files(const BatchOptions& options) {
  if (options.input_path == "-") throw UsageError("--devices needs an input that is a file");
  if (options.output_path == "-") throw UsageError("--devices needs an output that is a file");
  if (!options.shard.is_whole()) throw UsageError("--devices and --shard exclude each other");
}

// Checks all that can be wrong for every device alike, and warns, once, here, rather than in every
// process: these are quiet.
BatchInput check_requests(const BatchOptions& options) {
  BatchInput input(options.input_path, {});
  if (options.strict) refuse_problems(input);
  const ModelFolder folder = read_model_folder(options.engine);
  for (const std::string& warning : folder.warnings) spdlog::warn("{}", warning);
  return input;
}

// Whether an earlier run has put the output together and has left nothing for a device to do.
// Throws UsageError when it holds answers and others are missing: shards cannot be added to it.
bool is_finished(const BatchInput& input, const BatchOptions& options) {
  const BatchOutput output(options.output_path, existing_output(options));
  if (output.answers().requests.empty()) return false;
  if (!needs_engine(input, output)) return true;
  throw UsageError(
      concat(output.name(), " holds answers, but not all: --devices cannot add the rest"),
      "run the same command without --devices to do the rest, or start anew with --overwrite");
}

// The outputs of the processes, in the order of the devices.
std::vector<std::string> shard_paths_of(const BatchOptions& options) {
  std::vector<std::string> paths;
  const auto count = static_cast<int64_t>(options.devices.size());
  for (int64_t index = 0; index < count; ++index) {
    paths.push_back(shard_output_path(options.output_path, {.index = index, .count = count}));
  }
  return paths;
}

// Compares the settings, tries bad lines again and sums up, as a run of one process does. What a
// merge that was killed has left of the shards is in the output, and goes.
int finish_alone(BatchOptions& options, const Console& console) {
  const std::vector<std::string> shard_paths = shard_paths_of(options);
  options.engine.device = device_choice(options.devices.front());
  options.devices.clear();
  const int code = run_batch(options, console);
  remove_shards(shard_paths);
  return code;
}

// All processes draw with one seed: that of the run that is resumed, where there is one.
uint64_t find_seed(const BatchOptions& options, const std::vector<std::string>& shard_paths) {
  if (!options.resume) return random_seed();
  for (const std::string& path : shard_paths) {
    BatchManifest manifest(path);
    if (!std::filesystem::exists(manifest.path())) continue;
    read_manifest(manifest, options.force);
    if (const std::optional<uint64_t> seed = manifest.seed()) return *seed;
  }
  return random_seed();
}

// Compares for all processes, before any begins, what each would compare by itself: one that has no
// answers yet would go on with whatever settings it is given, beside others that refuse them.
void require_same_answers(const BatchOptions& options, BatchInput& input,
                          const std::vector<std::string>& shard_paths, const Console& console) {
  if (!options.resume || options.force) return;
  const auto kv = open_kv_option(options.kv_path, options.engine);
  const Conversation opening =
      kv ? kv->opening : Conversation(system_messages(options.prompt, console));
  const auto count = static_cast<int64_t>(shard_paths.size());
  for (int64_t index = 0; index < count; ++index) {
    const std::string& path = shard_paths[static_cast<size_t>(index)];
    std::error_code problem;
    if (std::filesystem::file_size(path, problem) == 0 || problem) continue;
    const BatchOutput output(path, ExistingOutput::kResume);
    if (output.answers().requests.empty()) continue;
    require_same_requests(input, {}, output, console);
    BatchOptions own = options;
    own.shard = {.index = index, .count = count};
    own.engine.device = device_choice(options.devices[static_cast<size_t>(index)]);
    BatchManifest manifest(path);
    settle_settings(own, opening, output, manifest);
  }
}

// Until the processes have ended. Of an output that is overwritten, what earlier runs have left,
// answers and shards of another number of devices, goes with the first new answer: from then on
// the shards of this run are what --resume goes on with.
void watch(Workers& workers, int64_t num_requests, BatchOutput& output, const BatchOptions& options,
           const Console& console) {
  BatchProgress progress(console);
  bool has_forwarded = false;
  bool is_replaced = !options.overwrite;
  before_forced_exit(kill_children);
  for (;;) {
    const bool is_running = workers.watch();
    if (!is_replaced && workers.counts(num_requests).answered > 0) {
      output.begin(console);
      remove_other_shards(options.output_path, shard_paths_of(options));
      is_replaced = true;
    }
    if (!is_running) break;
    if (is_interrupted() && !has_forwarded) {
      has_forwarded = true;
      workers.forward(pending_signal());
      progress.clear();
      const bool drains = pending_signal() == SIGINT;
      console.say(concat("interrupted",
                         drains ? ": requests in flight will be finished, Ctrl-C "
                                  "again stops now"
                                : "",
                         "; the rest with: ", resume_command(options)));
    }
    if (!progress.is_due()) continue;
    const BatchCounts counts = workers.counts(num_requests);
    progress.show(counts, counts.prompt_tokens, counts.generated_tokens, {}, {});
  }
  before_forced_exit(nullptr);
}

// The processes know what is not in their outputs: what was cached, and when they began to compute.
void add_measurements(const nlohmann::ordered_json& statistics, BatchCounts& counts) {
  for (const nlohmann::ordered_json& own : statistics) {
    counts.cached_prompt_tokens += own.value("cached_prompt_tokens", int64_t{0});
    counts.seconds = std::max(counts.seconds, own.value("seconds", 0.0));
    counts.generation_seconds =
        std::max(counts.generation_seconds, own.value("generation_seconds", 0.0));
    counts.preemptions += own.value("preemptions", int64_t{0});
    counts.longest_token_wait_seconds =
        std::max(counts.longest_token_wait_seconds, own.value("longest_token_wait_seconds", 0.0));
    counts.draws_with_run_seed = counts.draws_with_run_seed || own.value("draws_with_seed", false);
  }
}

void require_no_failures(const std::vector<std::string>& failed, const BatchOptions& options) {
  if (failed.empty()) return;
  std::string names;
  for (const std::string& name : failed) names += (names.empty() ? "" : ", ") + name;
  throw Error(concat("the run on ", names, " failed; what was answered is safe"),
              "the rest with: " + resume_command(options));
}

}  // namespace

std::vector<std::string> parse_devices(const std::string& text) {
  std::vector<std::string> devices;
  for (const std::string& name : split_at_commas(text)) {
    const std::string& device = devices.emplace_back(device_of(name));
    if (device != "cpu" && std::ranges::count(devices, device) > 1) {
      throw UsageError(
          concat("--devices has ", device, " twice: a GPU has memory for one process"));
    }
  }
  return devices;
}

int run_on_devices(BatchOptions& options, const Console& console) {
  resolve_sampling(options.sampling, {});
  require_files(options);
  require_separate_files(options);
  const bool has_own_seed = options.sampling.seed.has_value();
  const StatsFile stats(options.stats_path);
  BatchInput input = check_requests(options);
  if (is_finished(input, options)) return finish_alone(options, console);
  const auto num_requests = static_cast<int64_t>(input.items().size());
  BatchOutput output(options.output_path, existing_output(options));
  BatchManifest(options.output_path).require_replaceable();
  const std::vector<std::string> shard_paths = shard_paths_of(options);
  require_no_other_shards(options, shard_paths);
  require_same_answers(options, input, shard_paths, console);
  Workers workers(options, console);
  if (!has_own_seed) options.sampling.seed = find_seed(options, shard_paths);

  workers.start();
  watch(workers, num_requests, output, options, console);
  const nlohmann::ordered_json statistics = workers.statistics();
  BatchCounts counts = workers.counts(num_requests);
  add_measurements(statistics, counts);
  const AnswersDigest digest = workers.totals().digest;
  if (workers.are_done()) {
    merge_shards(shard_paths, options.output_path, options.force);
    if (options.overwrite) remove_other_shards(options.output_path, shard_paths);
  }
  const auto chosen_seed = has_own_seed ? std::nullopt : options.sampling.seed;
  console.say(summary_line(counts, chosen_seed, digest));
  nlohmann::ordered_json object;
  add_counts(counts, digest, object);
  object["seed"] = *options.sampling.seed;
  object["devices"] = statistics;
  stats.write(object);
  require_no_failures(workers.failed_devices(), options);
  if (!workers.are_done()) throw_if_interrupted();
  return counts.errors > 0 ? kExitItemErrors : kExitOk;
}

}  // namespace tessera
