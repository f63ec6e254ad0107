// From texts and a model to a plan.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/summarize/options.h"
#include "apps/summarize/plan.h"
#include "apps/summarize/prompts.h"
#include "apps/terminal/console.h"
#include "engine/engine.h"

namespace tessera {

// A text to summarize and what it is called.
struct Document {
  std::string name;
  std::string text;
  int64_t offset_bytes = 0;  // of the text in its file
};

// Finds where each can be cut. Several get headers. Throws Interrupted.
std::vector<MappedDocument> map_documents(const Engine& engine, const Prompts& prompts,
                                          std::vector<Document> documents, const Console& console);

// The plan for this engine. Throws as make_plan does, and Interrupted.
SummaryPlan plan_summary(const Engine& engine, const Prompts& prompts,
                         const SummarizeOptions& options, const SamplingParams& params,
                         std::span<const MappedDocument> documents);

}  // namespace tessera
