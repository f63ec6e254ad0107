// A file of requests in, a file of answers out.
#pragma once

#include "apps/batch/options.h"
#include "apps/terminal/console.h"

namespace tessera {

// Returns the exit code. Throws Error, UsageError, and Interrupted after Ctrl-C, once what may be
// finished is and the command that does the rest was said.
int run_batch(BatchOptions& options, const Console& console);

}  // namespace tessera
