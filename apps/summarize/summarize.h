// tessera summarize: documents of any length, one summary or one of each.
#pragma once

#include "apps/summarize/options.h"
#include "apps/terminal/console.h"

namespace tessera {

// Returns the exit code. Throws Error, UsageError, Interrupted once what was answered before a
// signal has been written.
int run_summarize(const SummarizeOptions& options, const Console& console);

}  // namespace tessera
