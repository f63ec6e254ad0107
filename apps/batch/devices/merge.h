// The outputs of the shards of a batch: how they are called, and how they become one.
#pragma once

#include <string>
#include <vector>

#include "apps/batch/shard.h"

namespace tessera {

// OUTPUT.shard-0-of-4
std::string shard_output_path(const std::string& output_path, const Shard& shard);

// The files beside the output that are outputs of its shards, of any count, in the order of their
// names. Throws Error when the folder cannot be read.
std::vector<std::string> find_shard_outputs(const std::string& output_path);

// Makes the output hold the lines of all shards, or leaves it as it is, gives it their manifest and
// removes what belonged to the shards. Throws Error.
void merge_shards(const std::vector<std::string>& shard_paths, const std::string& output_path);

// Removes these outputs and their manifests.
void remove_shards(const std::vector<std::string>& shard_paths);

}  // namespace tessera
