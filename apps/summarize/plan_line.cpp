#include "apps/summarize/plan_line.h"

#include <cmath>

#include "apps/summarize/estimate.h"
#include "apps/terminal/human_units.h"

namespace tessera {
namespace {

std::string merges_text(const MergeCount& merges) {
  if (merges.calls == 0) return "nothing to merge";
  // Summaries that are shorter than they may be need fewer.
  return concat("at most ", counted(merges.rounds, "merge round"), " of ",
                counted(merges.calls, "call"), merges.rounds > 1 ? " in all" : "");
}

std::string how(const SummaryPlan& plan) {
  switch (plan.kind) {
    case SummaryPlan::Kind::kOnePass:
      return "one pass";
    case SummaryPlan::Kind::kMiddle:
      return concat("does not fit: one pass over its beginning and its end, at most ",
                    plan.room_tokens, " tokens");
    case SummaryPlan::Kind::kChunks:
      return concat(
          plan.was_asked_to_chunk ? "" : "does not fit: ", counted(plan.calls.size(), "chunk"),
          " of at most ", plan.chunk_tokens, " tokens, overlap at most ", plan.overlap_tokens, ", ",
          merges_text(plan.merges));
  }
  return "";
}

std::string stretch_text(const ModelConfig& config) {
  if (!config.stretch) return "";
  const auto& [trained_context, factor] = *config.stretch;
  return concat(" (trained ", trained_context, factor > 1.0 ? concat(", YaRN factor ", factor) : "",
                ')');
}

std::string time_text(const Forecast& forecast) {
  return concat("about ", human_duration(forecast.reading_seconds), " to read, at most ",
                human_duration(std::ceil(forecast.answering_seconds)), " to answer");
}

}  // namespace

std::string plan_line(const Engine& engine, const EngineOptions& options,
                      std::span<const MappedDocument> documents, const SummaryPlan& plan) {
  const std::string name =
      documents.size() == 1 ? printable(documents[0].name) : counted(documents.size(), "document");
  return concat(name, ": ", counted(plan.document_tokens, "token"), ", context ", plan.context_size,
                stretch_text(engine.folder().config), ", ", plan.answer_tokens, " reserved for ",
                plan.kind == SummaryPlan::Kind::kChunks ? "each" : "the", " summary; ", how(plan),
                "; KV ", human_bytes(kv_bytes_needed(engine, plan)), "; ",
                time_text(make_forecast(engine, options, plan)));
}

}  // namespace tessera
