#include "apps/batch/options.h"

#include "apps/batch/devices/shard_files.h"
#include "apps/batch/manifest.h"
#include "apps/files/same_file.h"
#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

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

}  // namespace

void require_separate_files(const BatchOptions& options) {
  std::vector<NamedFile> inputs = {{"--system-file", options.prompt.system_file},
                                   {"--kv", options.kv_path},
                                   {"input", options.input_path}};
  std::vector<NamedFile> outputs = {{"output", options.output_path},
                                    {"--stats-json", options.stats_path}};
  if (options.output_path != "-") {
    outputs.push_back({"the output's manifest", BatchManifest(options.output_path).path()});
    for (const std::string& path : find_shard_outputs(options.output_path)) {
      outputs.push_back({"the output of a shard", path});
    }
  }
  require_separate_files(options.engine, std::move(inputs), outputs);
  if (options.output_path == "-" && options.stats_path == "-") {
    throw UsageError("answers and --stats-json cannot both go to standard output");
  }
}

std::string resume_command(const BatchOptions& options) {
  std::string command;
  for (const std::string& argument : options.arguments) {
    if (argument == "--overwrite" || argument == "--resume") continue;
    command += shell_quoted(argument) + " ";
  }
  return command + "--resume";
}

}  // namespace tessera
