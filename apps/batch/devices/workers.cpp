#include "apps/batch/devices/workers.h"

#include <algorithm>
#include <csignal>

#include "apps/batch/devices/shard_files.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

constexpr int kWatchMilliseconds = 100;

// Flags of this command line that are not, or not so, those of a process for one device.
constexpr std::array<std::string_view, 3> kOwnFlags = {"--resume", "--overwrite", "--strict"};
constexpr std::string_view kDevicesFlag = "--devices";

// The command line without them and without the program's name.
std::vector<std::string> shared_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> shared;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == kDevicesFlag) {
      ++i;  // and its value
    } else if (!argument.starts_with(concat(kDevicesFlag, '=')) &&
               std::ranges::find(kOwnFlags, argument) == kOwnFlags.end()) {
      shared.push_back(argument);
    }
  }
  return shared;
}

}  // namespace

Workers::Workers(const BatchOptions& options, const Console& console)
    : options_(options), console_(console) {
  const auto count = static_cast<int64_t>(options.devices.size());
  for (const std::string& device : options.devices) {
    const Shard shard = {.index = static_cast<int64_t>(workers_.size()), .count = count};
    workers_.push_back({.device = device,
                        .shard = shard,
                        .output = ShardOutput(shard_output_path(options.output_path, shard)),
                        .before = {},
                        .process = nullptr});
    if (options.resume) workers_.back().before = workers_.back().output.update();
    if (options.overwrite) workers_.back().output.ignore_present();
  }
}

void Workers::start() {
  for (Worker& worker : workers_) {
    worker.process = std::make_unique<ChildProcess>(arguments_of(worker));
  }
}

// Flags given again override: these come last.
std::vector<std::string> Workers::arguments_of(const Worker& worker) const {
  std::vector<std::string> arguments = shared_arguments(options_.arguments);
  arguments.insert(arguments.end(),
                   {"--output", worker.output.path(), "--shard", worker.shard.text(), "--device",
                    worker.device, "--seed", std::to_string(*options_.sampling.seed), "--quiet"});
  if (options_.resume) arguments.push_back("--resume");
  if (options_.overwrite) arguments.push_back("--overwrite");
  return arguments;
}

bool Workers::watch() {
  std::vector<ChildProcess*> processes;
  for (const Worker& worker : workers_) processes.push_back(worker.process.get());
  ChildProcess::wait_for_any(processes, kWatchMilliseconds);
  bool is_running = false;
  for (const Worker& worker : workers_) {
    is_running = !worker.process->exit_code() || is_running;
    for (const std::string& line : worker.process->take_lines()) tell(worker, line);
  }
  return is_running;
}

void Workers::tell(const Worker& worker, const std::string& line) const {
  constexpr std::string_view kError = "error: ";
  if (line.starts_with(kError)) {
    console_.report(concat(worker.device, ": ", line.substr(kError.size())));
  } else {
    console_.tell(concat(worker.device, ": ", line));
  }
}

void Workers::forward(int signal) const {
  for (const Worker& worker : workers_) worker.process->forward(signal);
}

bool Workers::are_done() const {
  return std::ranges::all_of(workers_, [](const Worker& worker) {
    const std::optional<int> code = worker.process->exit_code();
    return code == kExitOk || code == kExitItemErrors;
  });
}

std::vector<std::string> Workers::failed_devices() const {
  std::vector<std::string> failed;
  for (const Worker& worker : workers_) {
    const int code = worker.process->exit_code().value_or(kExitOk);
    const bool is_fine = code == kExitOk || code == kExitItemErrors;
    if (is_fine || code == exit_code_of(SIGINT) || code == exit_code_of(SIGTERM)) continue;
    failed.push_back(concat(worker.device, " (exit code ", code, ')'));
  }
  return failed;
}

BatchCounts Workers::counts(int64_t total) {
  BatchCounts counts;
  counts.total = total;
  for (Worker& worker : workers_) {
    const OutputTotals& now = worker.output.update();
    counts.skipped += worker.before.answered;
    counts.answered += std::max<int64_t>(now.answered - worker.before.answered, 0);
    // A process that goes on drops the errors of earlier runs with the file that had them.
    counts.errors += now.errors - (worker.output.is_as_found() ? worker.before.errors : 0);
    counts.prompt_tokens += now.prompt_tokens - worker.before.prompt_tokens;
    counts.generated_tokens += now.generated_tokens - worker.before.generated_tokens;
  }
  return counts;
}

OutputTotals Workers::totals() {
  OutputTotals totals;
  for (Worker& worker : workers_) totals.add(worker.output.update());
  return totals;
}

nlohmann::ordered_json Workers::statistics() const {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const Worker& worker : workers_) {
    nlohmann::ordered_json own = nlohmann::ordered_json::parse(worker.process->statistics(),
                                                               nullptr, /*allow_exceptions=*/false);
    if (!own.is_object()) continue;  // it ended before
    own["device_name"] = worker.device;
    all.push_back(std::move(own));
  }
  return all;
}

}  // namespace tessera
