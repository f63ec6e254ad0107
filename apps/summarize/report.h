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
  std::string answer;            // without what was thought before it
  bool is_only_thought = false;  // it ended before an answer began

  bool was_stopped() const { return result.stop_reason == StopReason::kCancelled; }
  // There is no answer, or what the model computed was not finite and the answer breaks off.
  bool has_failed() const;
  bool is_complete() const { return !was_stopped() && !has_failed(); }
  // Why it has failed.
  std::string problem() const;
  // It ended because it had reached its number of tokens, or the context was full.
  bool is_cut() const;
};

struct Report {
  std::vector<MappedDocument> documents;
  std::string instruction;
  SummaryPlan plan;
  SamplingParams params;  // of all calls, but for how long their answers may be
  std::vector<CallRecord> calls;
  bool was_interrupted = false;  // a signal came before the end
  bool is_merged = true;  // else a merge failed, or summaries were too long for one: they stand
                          // side by side
  double seconds = 0.0;   // of all calls

  bool is_complete() const { return !was_interrupted && num_failed() == 0; }
  // Of the last call when it is complete, else what the calls have answered that no other has
  // merged, with an empty line between any two. Of a document read in one call also what that had
  // said when it was stopped.
  std::string summary() const;
  // Calls that are complete and of which nothing has been merged, in the order of what they read.
  std::vector<size_t> unmerged_calls() const;
  int64_t num_cut() const;
  int64_t num_failed() const;
};

// Where the slice's bytes lie in its file, which may begin with a byte order mark.
Range bytes_in_file(const Report& report, const Slice& slice);

// What of the documents no call read, in tokens.
std::vector<Slice> left_out(const Report& report);

// The same for statistics: of each slice "document", "begin" and "tokens". Empty after a signal,
// when anything may be missing.
nlohmann::ordered_json left_out_json(const Report& report);

// "summary", "documents", "plan", "coverage": each token and byte range of every document and the
// call that reads it, "left_out", "calls". Byte ranges count from the beginning of the file, a byte
// order mark included.
nlohmann::ordered_json report_json(const Report& report);

}  // namespace tessera
