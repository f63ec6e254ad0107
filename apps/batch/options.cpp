#include "apps/batch/options.h"

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
  require_separate_files(options.input_path, options.output_path, "input and output");
  require_separate_files(options.input_path, options.stats_path, "input and --stats-json");
  require_separate_files(options.output_path, options.stats_path, "output and --stats-json");
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
