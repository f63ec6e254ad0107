// Whether the answers that an output file holds may be joined by those of this run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/batch/input.h"
#include "apps/batch/manifest.h"
#include "apps/batch/options.h"
#include "apps/batch/output.h"
#include "apps/files/conversation.h"
#include "apps/terminal/console.h"

namespace tessera {

// Throws UsageError when a request that was answered is not the one that the input holds now, and
// says on the console how many answers belong to none.
void require_same_requests(BatchInput& input, const BatchOutput& output, const Console& console);

// The settings of this run's answers. Without --seed they get the seed of the run that is resumed,
// or a random one, which `options` then holds. Of the weights only what tells models apart is read.
// Throws UsageError when answers are there that were made with others and --force was not given.
nlohmann::json settle_settings(BatchOptions& options, const Conversation& opening,
                               const BatchOutput& output, BatchManifest& manifest);

}  // namespace tessera
