// What became of the documents: their summary, and which call read what.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/summarize/plan.h"
#include "engine/engine.h"

namespace tessera {

// One call of the model: it read parts of documents, or merged what others answered.
struct CallRecord {
  int64_t round = 0;           // 0 reads documents, the others merge
  std::vector<Slice> slices;   // what it read
  std::vector<size_t> merged;  // which calls it merged, by their index in the report
  GenerationResult result;
  std::string answer;  // without what was thought before it

  bool is_complete() const { return result.stop_reason != StopReason::kCancelled; }
  // It ended because it had reached its number of tokens, or the context was full.
  bool is_cut() const;
};

struct Report {
  std::vector<MappedDocument> documents;
  std::string instruction;
  SummaryPlan plan;
  std::vector<CallRecord> calls;
  bool is_complete = false;  // else a signal came first
  bool is_merged = true;     // else summaries were too long for a merge, and stand side by side
  double seconds = 0.0;      // of all calls

  // Of the last call when it is complete, else what the calls have answered that no other has
  // merged, with an empty line between any two.
  std::string summary() const;
  // Calls that are complete and of which nothing has been merged.
  std::vector<size_t> unmerged_calls() const;
  int64_t num_cut() const;
};

// What of the documents no call read, in tokens.
std::vector<Slice> left_out(const Report& report);

// "summary", "documents", "plan", "coverage": each token and byte range of every document and the
// call that reads it, "left_out", "calls". Byte ranges count from the beginning of the text, behind
// a byte order mark.
nlohmann::ordered_json report_json(const Report& report);

}  // namespace tessera
