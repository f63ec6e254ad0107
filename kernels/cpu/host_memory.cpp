#include "kernels/cpu/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>

namespace tessera {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

// The number after `key` in a file of lines "key: number" or "key number".
std::optional<size_t> find_number(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    size_t number = 0;
    if (word == key && file >> number) return number;
  }
  return std::nullopt;
}

// A file with one number; nothing for "max".
std::optional<size_t> read_number(const std::string& path) {
  std::ifstream file(path);
  size_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

// Where the two versions of control groups keep a group's memory limit and use.
struct ControlGroupFiles {
  const char* root;
  const char* limit;
  const char* usage;
  const char* cache;  // key in memory.stat: file cache that the kernel gives back when asked
};
constexpr ControlGroupFiles kVersion1 = {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes",
                                         "/memory.usage_in_bytes", "total_inactive_file"};
constexpr ControlGroupFiles kVersion2 = {"/sys/fs/cgroup", "/memory.max", "/memory.current",
                                         "inactive_file"};

// Lowers `memory` to what the group at `path` and the groups around it allow.
void apply_limits(const ControlGroupFiles& files, std::string path, DeviceMemory& memory) {
  while (true) {
    const std::string folder = files.root + path;
    const auto limit = read_number(folder + files.limit);
    const auto usage = read_number(folder + files.usage);
    if (limit && usage) {
      const size_t cache = find_number(folder + "/memory.stat", files.cache).value_or(0);
      const size_t used = *usage - std::min(*usage, cache);
      memory.total_bytes = std::min(memory.total_bytes, *limit);
      memory.free_bytes = std::min(memory.free_bytes, *limit - std::min(*limit, used));
    }
    const size_t parent = path.rfind('/');
    if (parent == std::string::npos) return;
    path.resize(parent);
  }
}

}  // namespace

DeviceMemory host_memory() {
  const std::string meminfo = "/proc/meminfo";  // in KiB
  const auto total = find_number(meminfo, "MemTotal:");
  const auto available = find_number(meminfo, "MemAvailable:");
  CHECK(total && available, meminfo, " does not tell how much memory is available");
  DeviceMemory memory{.free_bytes = *available * 1024, .total_bytes = *total * 1024};

  // Lines "number:controllers:/path"; version 2 has no controllers.
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) apply_limits(kVersion2, path, memory);
    if (("," + controllers + ",").find(",memory,") != std::string::npos) {
      apply_limits(kVersion1, path, memory);
    }
  }
  return memory;
}

Buffer allocate_host_memory(size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  const size_t free_bytes = host_memory().free_bytes;
  CHECK(bytes <= free_bytes, "not enough memory for ", purpose, ": it needs ", bytes, " bytes, ",
        free_bytes, " are free");
  const size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  void* data = std::aligned_alloc(alignment, checked_round_up(bytes, alignment, "allocation"));
  if (data == nullptr) {
    throw Error(concat("the system refused ", bytes, " bytes for ", purpose, ", though ",
                       free_bytes, " are free"),
                "is this process limited? see ulimit -v");
  }
  if (alignment == kHugePageBytes) madvise(data, bytes, MADV_HUGEPAGE);
  return Buffer(data, bytes, DeviceType::kCpu, std::free);
}

}  // namespace tessera
