// model.safetensors.index.json: which file holds which tensor.
//
//   {"metadata": {"total_size": 123},
//    "weight_map": {"lm_head.weight": "model-00002-of-00002.safetensors", ...}}
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct ShardedIndex {
  std::vector<std::string> files;                            // names, sorted
  std::map<std::string, size_t, std::less<>> file_index_of;  // tensor name to index in `files`
  std::optional<double> total_size_bytes;                    // of all tensors; often wrong
};

// Throws Error when the file is malformed, maps nothing, or names a file outside its folder. Does
// not look whether the files exist.
ShardedIndex read_sharded_index(const std::string& path);

}  // namespace tessera
