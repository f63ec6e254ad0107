// How the outputs of the shards of a batch become one.
#pragma once

#include <string>
#include <vector>

namespace tessera {

// Makes the output hold the lines of all shards, or leaves it as it is, gives it their manifest and
// removes what belonged to the shards. `force` is --force: a manifest that is damaged is none.
// Throws Error.
void merge_shards(const std::vector<std::string>& shard_paths, const std::string& output_path,
                  bool force);

}  // namespace tessera
