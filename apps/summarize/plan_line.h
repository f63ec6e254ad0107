// A plan in one line, said before the model computes anything.
#pragma once

#include <span>
#include <string>

#include "apps/summarize/plan.h"
#include "engine/engine.h"

namespace tessera {

// "report.txt: 3921 tokens, context 16384, 512 reserved for the summary; one pass; KV 26.0 MiB;
// about 3 s to read, at most 2 s to answer". `options` are those of the engine. Throws Stopped, see
// make_forecast().
std::string plan_line(const Engine& engine, const EngineOptions& options,
                      std::span<const MappedDocument> documents, const SummaryPlan& plan);

}  // namespace tessera
