// model.safetensors.index.json, and the checkpoint that it describes.
#include "model_loaders/sharded_index.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model_loaders/checkpoint.h"
#include "model_loaders/safe_file_name.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_folder.h"
#include "tests/fuzz/oracle.h"
#include "tests/model_loaders/safetensors_builder.h"

namespace tessera {
namespace {

// An index of two files that exist: x and y are in a.safetensors, z in b.safetensors.
const MemoryFolder& model_folder() {
  static const MemoryFolder* const folder = [] {
    static const MemoryFolder made("model.safetensors.index.json");
    made.folder().write(
        "a.safetensors",
        SafetensorsBuilder().add("x", "F32", "[1]", "0123").add("y", "F16", "[1]", "45").file());
    made.folder().write("b.safetensors", SafetensorsBuilder().add("z", "BF16", "[1]", "67").file());
    return &made;
  }();
  return *folder;
}

std::string json_of(const ShardedIndex& index) {
  nlohmann::json json = {{"weight_map", nlohmann::json::object()}};
  for (const auto& [tensor, file] : index.file_index_of) {
    json["weight_map"][tensor] = index.files.at(file);
  }
  if (index.total_size_bytes) json["metadata"] = {{"total_size", *index.total_size_bytes}};
  return json.dump();
}

void read(std::string_view bytes) {
  const MemoryFolder& folder = model_folder();
  folder.replace(bytes);
  const ShardedIndex index = read_sharded_index(folder.path());
  require(!index.files.empty() && !index.file_index_of.empty(), "an index maps something");
  require(std::ranges::is_sorted(index.files), "the files are sorted");
  require(std::ranges::all_of(index.files, is_safe_file_name), "no file is outside the folder");

  folder.replace(json_of(index));
  const ShardedIndex again = read_sharded_index(folder.path());
  require(again.files == index.files && again.file_index_of == index.file_index_of &&
              again.total_size_bytes == index.total_size_bytes,
          "an index written from what was read reads the same");

  const Checkpoint checkpoint = Checkpoint::open(folder.folder().path());
  for (const std::string& warning : checkpoint.warnings()) require_readable(warning);
}

std::vector<std::string> seeds() {
  return {
      R"({"metadata": {"total_size": 8}, "weight_map": {"x": "a.safetensors",
          "y": "a.safetensors", "z": "b.safetensors"}})",
      R"({"metadata": {"total_size": 9}, "weight_map": {"x": "a.safetensors"}})",
      R"({"metadata": null, "weight_map": {"z": "b.safetensors", "x": "b.safetensors"}})",
      R"({"weight_map": {"x": "c.safetensors", "x.rotary_emb.inv_freq": "a.safetensors"}})",
      R"({"weight_map": {"x": "../a.safetensors"}})",
      R"({"weight_map": {"x": "/etc/passwd"}})",
      R"({"weight_map": {"x": "a\u0000b.safetensors"}})",
      R"({"weight_map": {"x": 1}})",
      R"({"weight_map": []})",
      R"({"weight_map": {}})",
      R"({"metadata": {"total_size": 1e999}, "weight_map": {"x": "a.safetensors"}})",
      R"({"metadata": {"total_size": -1}, "weight_map": {"x": "a.safetensors"}})",
  };
}

}  // namespace

FuzzTarget sharded_index_target() {
  return {"sharded_index",
          read,
          seeds(),
          {"\"weight_map\"", "\"metadata\"", "\"total_size\"", "\"a.safetensors\"",
           "\"b.safetensors\"", "\"x\"", "\"y\"", "\"z\"", "..", "\\u0000", "1e308", "null"}};
}

}  // namespace tessera
