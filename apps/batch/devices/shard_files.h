// The files of the shards of a batch: how they are called, which are there, and which may be in the
// way of a run.
#pragma once

#include <string>
#include <vector>

#include "apps/batch/options.h"
#include "apps/batch/shard.h"

namespace tessera {

// OUTPUT.shard-0-of-4
std::string shard_output_path(const std::string& output_path, const Shard& shard);

// The files beside the output that are outputs of its shards, of any count, in the order of their
// names; none in a folder that may not be listed or is not there. Throws Error when it cannot be
// read otherwise.
std::vector<std::string> find_shard_outputs(const std::string& output_path);

// Throws UsageError where a run would leave answers behind that shards of an earlier one hold:
// unless it starts anew, or is resumed and goes on with them, which are then `own`. An empty shard
// holds none: that is what a run leaves that ended before it began.
void require_no_other_shards(const BatchOptions& options, const std::vector<std::string>& own);

// Removes these outputs and their manifests.
void remove_shards(const std::vector<std::string>& shard_paths);

// Removes those of all shards but these.
void remove_other_shards(const std::string& output_path, const std::vector<std::string>& own);

}  // namespace tessera
