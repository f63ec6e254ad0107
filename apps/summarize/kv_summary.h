// The summary of a document that tessera prefill has read.
#pragma once

#include "apps/summarize/options.h"
#include "apps/terminal/console.h"

namespace tessera {

// Follows the document of options.kv_path by the instruction, and shows the answer as it comes. Its
// keys and values are read instead of computed, so that there is nothing to plan. Throws Error when
// the file is damaged, of another model, or leaves no room in the context; Interrupted.
int summarize_kv(const SummarizeOptions& options, const Console& console);

}  // namespace tessera
