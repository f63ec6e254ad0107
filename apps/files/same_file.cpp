#include "apps/files/same_file.h"

#include <filesystem>
#include <system_error>

#include "apps/process/exit_codes.h"

namespace tessera {
namespace {

// Nothing that was in a device is lost by writing to it.
bool can_be_lost(const NamedFile& file) {
  std::error_code problem;
  return file.is_file() && !std::filesystem::is_character_file(file.path, problem);
}

// A file that does not exist yet is told by its path alone.
bool is_same_file(const NamedFile& left, const NamedFile& right) {
  if (!can_be_lost(left) || !can_be_lost(right)) return false;
  std::error_code problem;
  if (std::filesystem::equivalent(left.path, right.path, problem)) return true;
  const auto path = [&problem](const std::string& name) {
    return std::filesystem::weakly_canonical(name, problem);
  };
  return path(left.path) == path(right.path) && !problem;
}

void require_separate(const NamedFile& left, const NamedFile& right) {
  if (!is_same_file(left, right)) return;
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
