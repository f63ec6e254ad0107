#include "apps/batch/devices/shard_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "apps/batch/manifest.h"
#include "apps/process/exit_codes.h"
#include "engine/engine.h"

namespace tessera {
namespace {

namespace filesystem = std::filesystem;

}  // namespace

std::string shard_output_path(const std::string& output_path, const Shard& shard) {
  return concat(output_path, ".shard-", shard.index, "-of-", shard.count);
}

std::vector<std::string> find_shard_outputs(const std::string& output_path) {
  const std::string prefix = filesystem::path(output_path).filename().string() + ".shard-";
  filesystem::path folder = filesystem::path(output_path).parent_path();
  if (folder.empty()) folder = ".";
  std::vector<std::string> found;
  std::error_code problem;
  for (const auto& entry : filesystem::directory_iterator(folder, problem)) {
    const std::string name = entry.path().filename().string();
    const bool is_output = name.starts_with(prefix) && name.find('.', prefix.size()) == name.npos;
    if (is_output) found.push_back((filesystem::path(output_path).parent_path() / name).string());
  }
  const bool has_none =
      problem == std::errc::permission_denied || problem == std::errc::no_such_file_or_directory;
  CHECK(!problem || has_none, output_path, ": its folder cannot be read: ", problem.message());
  std::ranges::sort(found);
  return found;
}

void require_no_other_shards(const BatchOptions& options, const std::vector<std::string>& own) {
  if (options.overwrite) return;
  for (const std::string& path : find_shard_outputs(options.output_path)) {
    std::error_code problem;
    const bool is_empty = filesystem::file_size(path, problem) == 0 && !problem;
    const bool is_own = std::ranges::find(own, path) != own.end();
    if (is_empty || (is_own && options.resume)) continue;
    throw UsageError(concat(path, " holds answers of a run with --devices that has not ended"),
                     "--resume with as many --devices as then goes on with them, --overwrite "
                     "starts anew");
  }
}

void remove_shards(const std::vector<std::string>& shard_paths) {
  for (const std::string& path : shard_paths) {
    std::error_code ignored;  // what stays is told of when the output is begun anew
    filesystem::remove(BatchManifest(path).path(), ignored);
    filesystem::remove(path, ignored);
  }
}

void remove_other_shards(const std::string& output_path, const std::vector<std::string>& own) {
  std::vector<std::string> others = find_shard_outputs(output_path);
  std::erase_if(others,
                [&](const std::string& path) { return std::ranges::find(own, path) != own.end(); });
  remove_shards(others);
}

}  // namespace tessera
