// A file of requests in, a file of answers out.
#pragma once

#include "apps/batch/input.h"
#include "apps/batch/options.h"
#include "apps/batch/output.h"
#include "apps/terminal/console.h"

namespace tessera {

// What may be there already.
ExistingOutput existing_output(const BatchOptions& options);

// Throws Error that names the first line that is no request, if there is one.
void refuse_problems(BatchInput& input);

// Whether a request that a model could answer has no answer yet: without one, none is loaded.
bool needs_engine(const BatchInput& input, const BatchOutput& output);

// Returns the exit code. Throws Error, UsageError, and Interrupted after Ctrl-C, once what may be
// finished is and the command that does the rest was said.
int run_batch(BatchOptions& options, const Console& console);

}  // namespace tessera
