#include "apps/batch/options.h"

#include <filesystem>
#include <system_error>

#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

bool is_file_name(const std::string& path) { return !path.empty() && path != "-"; }

// A file that does not exist yet is told by its path alone.
bool is_same_file(const std::string& left, const std::string& right) {
  if (!is_file_name(left) || !is_file_name(right)) return false;
  std::error_code problem;
  if (std::filesystem::equivalent(left, right, problem)) return true;
  const auto path = [&problem](const std::string& name) {
    return std::filesystem::weakly_canonical(name, problem);
  };
  return path(left) == path(right) && !problem;
}

void require_separate(const std::string& left, const std::string& right, const char* what) {
  if (!is_same_file(left, right)) return;
  throw UsageError(concat(what, " are the same file: ", right));
}

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
  require_separate(options.input_path, options.output_path, "input and output");
  require_separate(options.input_path, options.stats_path, "input and --stats-json");
  require_separate(options.output_path, options.stats_path, "output and --stats-json");
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
