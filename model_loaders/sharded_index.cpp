#include "model_loaders/sharded_index.h"

#include <algorithm>
#include <set>

#include "kernels/tensor/check.h"
#include "model_loaders/json.h"
#include "model_loaders/printable.h"
#include "model_loaders/safe_file_name.h"

namespace tessera {
namespace {

// Each stays open while the model loads; the largest models there are have about 200.
constexpr size_t kMaxFiles = 512;

}  // namespace

ShardedIndex read_sharded_index(const std::string& path) {
  const JsonObject json = JsonObject::read(path);
  const auto weight_map = json.find_object("weight_map");
  CHECK(weight_map, path, ": has no weight_map");

  std::map<std::string, std::string> file_of;
  std::set<std::string> files;
  for (const std::string& tensor : weight_map->keys()) {
    const std::string file = weight_map->get_string(tensor);
    CHECK(is_safe_file_name(file) && file.ends_with(".safetensors"), path,
          ": unsafe file name in index: '", printable(file), "'");
    files.insert(file);
    file_of[tensor] = file;
  }
  CHECK(!files.empty(), path, ": weight_map is empty");
  CHECK(files.size() <= kMaxFiles, path, ": weight_map names ", files.size(), " files, at most ",
        kMaxFiles, " are read");

  ShardedIndex index;
  index.files.assign(files.begin(), files.end());
  for (const auto& [tensor, file] : file_of) {
    const auto position = std::ranges::lower_bound(index.files, file);
    index.file_index_of[tensor] = static_cast<size_t>(position - index.files.begin());
  }
  if (const auto metadata = json.find_object("metadata")) {
    index.total_size_bytes = metadata->find_number("total_size", 0.0, 1e18);
  }
  return index;
}

}  // namespace tessera
