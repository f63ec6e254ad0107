// Whether the answers that an output file holds may be joined by those of this run.
#pragma once

#include <nlohmann/json.hpp>

#include "apps/batch/input.h"
#include "apps/batch/manifest.h"
#include "apps/batch/options.h"
#include "apps/batch/output.h"
#include "apps/batch/shard.h"
#include "apps/files/conversation.h"
#include "apps/terminal/console.h"

namespace tessera {

// Throws UsageError when a request that was answered is not the one that the input holds now, and
// says on the console how many answers belong to none. The input has kept the requests of `shard`.
void require_same_requests(BatchInput& input, const Shard& shard, const BatchOutput& output,
                           const Console& console);

// Reads it as far as --force, `force`, needs it to be there: with it, one that is missing or
// damaged tells no settings. Throws UsageError without.
void read_manifest(BatchManifest& manifest, bool force);

// The settings of this run's answers. Without --seed they get the seed of the run that is resumed,
// or a random one, which `options` then holds. Of the weights only what tells models apart is read.
// Throws UsageError when answers are there that were made with others and --force was not given,
// and when there are none but a file that is no manifest has the name of one.
nlohmann::json settle_settings(BatchOptions& options, const Conversation& opening,
                               const BatchOutput& output, BatchManifest& manifest);

}  // namespace tessera
