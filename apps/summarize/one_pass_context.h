// The context in which documents can be read at once: what --rope-scaling auto chooses for them.
#pragma once

#include <cstdint>
#include <span>

#include "apps/summarize/options.h"
#include "apps/summarize/planning.h"
#include "apps/terminal/console.h"

namespace tessera {

// The EngineOptions::context_size for one pass over all documents, with --each over the longest. 0,
// the model's own context, where that holds them; and also, with a line that says so, where memory
// does not hold a longer one and the documents may be cut instead. Throws Error as PromptCounter
// does, Interrupted.
int64_t one_pass_context(const SummarizeOptions& options, std::span<const Document> documents,
                         const Console& console);

}  // namespace tessera
