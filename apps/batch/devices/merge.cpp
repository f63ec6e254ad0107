#include "apps/batch/devices/merge.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apps/batch/devices/shard_files.h"
#include "apps/batch/manifest.h"
#include "apps/batch/resume.h"
#include "apps/files/atomic_file.h"
#include "engine/engine.h"

namespace tessera {
namespace {

namespace filesystem = std::filesystem;

void copy_file(const std::string& path, FileReplacement& copy) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(file.value() >= 0, path, ": ", std::strerror(errno));
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t count = read(file.value(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    CHECK(count >= 0, path, ": read failed: ", std::strerror(errno));
    if (count == 0) return;
    copy.write({block.data(), static_cast<size_t>(count)});
  }
}

// A shard of which no line was a request has none.
void write_manifest(const std::vector<std::string>& shard_paths, const std::string& output_path,
                    bool force) {
  for (const std::string& path : shard_paths) {
    BatchManifest manifest(path);
    if (!filesystem::exists(manifest.path())) continue;
    read_manifest(manifest, force);
    nlohmann::json settings = manifest.settings();
    if (settings.is_null()) continue;
    settings["shard"] = nullptr;
    return BatchManifest(output_path).write(settings);
  }
}

}  // namespace

void merge_shards(const std::vector<std::string>& shard_paths, const std::string& output_path,
                  bool force) {
  FileReplacement merged(output_path);
  for (const std::string& path : shard_paths) copy_file(path, merged);
  // First: answers without one could not be resumed.
  write_manifest(shard_paths, output_path, force);
  merged.commit();
  remove_shards(shard_paths);
}

}  // namespace tessera
