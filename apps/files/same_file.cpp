#include "apps/files/same_file.h"

#include <filesystem>
#include <system_error>

#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

// Nothing that was in a device is lost by writing to it.
bool is_file_name(const std::string& path) {
  std::error_code problem;
  return !path.empty() && path != "-" && !std::filesystem::is_character_file(path, problem);
}

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

void require_separate(const NamedFile& left, const NamedFile& right) {
  if (!is_same_file(left.path, right.path)) return;
  throw UsageError(concat(left.name, " and ", right.name, " are the same file: ", right.path));
}

}  // namespace

void require_separate_files(const std::vector<NamedFile>& inputs,
                            const std::vector<NamedFile>& outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const NamedFile& input : inputs) require_separate(input, outputs[i]);
    for (size_t j = 0; j < i; ++j) require_separate(outputs[j], outputs[i]);
  }
}

}  // namespace tessera
