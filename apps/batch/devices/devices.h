// A batch on several devices of this host: a process for each, which does a shard of the requests.
#pragma once

#include "apps/batch/options.h"
#include "apps/terminal/console.h"

namespace tessera {

// "0,1" and "cuda:0,cuda:1" name GPUs, "cpu" the processor. Throws UsageError for other names.
std::vector<std::string> parse_devices(const std::string& text);

// Checks the requests, lets a process per device of options.devices answer them and makes one
// output of theirs. Until then the answers are in OUTPUT.shard-I-of-N, from where --resume goes on.
// A process that fails is told of and not started again. Where the output has every answer, this
// process does what is left. Returns the exit code; throws as run_batch() does.
int run_on_devices(BatchOptions& options, const Console& console);

}  // namespace tessera
