#include "apps/files/same_file.h"

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

}  // namespace

void require_separate_files(const std::string& left, const std::string& right,
                            const std::string& what) {
  if (!is_same_file(left, right)) return;
  throw UsageError(what + " are the same file: " + right);
}

}  // namespace tessera
