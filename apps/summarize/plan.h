// How documents will be summarized, decided before the model computes anything. Plain data: no
// model takes part.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/options/overflow_option.h"
#include "apps/summarize/merges.h"
#include "apps/summarize/slice.h"

namespace tessera {

// What is known and wanted, in tokens.
struct PlanRequest {
  int64_t context_size = 0;
  int64_t model_context_size = 0;   // the longest that the model can have
  std::string longer_context;       // see TextLimit
  int64_t frame_tokens = 0;         // of a prompt without its document: template, instruction
  int64_t whole_prompt_tokens = 0;  // of one that holds all of the documents; 0: surely too many
  int64_t answer_tokens = 0;        // reserved for an answer
  bool has_answer_wish = false;     // they were asked for; else chunks reserve fewer where short
  OnOverflow on_overflow = OnOverflow::kChunk;
  bool chunk = false;              // also where all would fit
  int64_t chunk_tokens = 0;        // of a chunk at most; 0: what is usual
  std::optional<int64_t> overlap;  // of neighbouring chunks at most
};

struct SummaryPlan {
  enum class Kind : uint8_t { kOnePass, kChunks, kMiddle };
  Kind kind = Kind::kOnePass;
  std::vector<std::vector<Slice>> calls;  // what each reads
  std::vector<int64_t> call_tokens;       // of the prompt of each, at most
  int64_t document_tokens = 0;
  int64_t context_size = 0;
  int64_t answer_tokens = 0;   // reserved in every call
  int64_t frame_tokens = 0;    // of every prompt, beside its document
  int64_t room_tokens = 0;     // left for text in every call
  int64_t chunk_tokens = 0;    // of the longest chunk
  int64_t overlap_tokens = 0;  // of neighbouring chunks at most
  bool was_asked_to_chunk = false;
  std::string longer_context;  // see TextLimit
  MergeCount merges;           // at most

  // Tokens that all prompts have together, merges as long as they can be.
  int64_t prompt_tokens() const;
  // Tokens of the longest call that reads, with its answer.
  int64_t longest_call() const;
};

// Throws Error with the numbers and what would help: the documents do not fit and may not be cut,
// or a call has no room for a piece of text or for two summaries.
SummaryPlan make_plan(std::span<const MappedDocument> documents, const PlanRequest& request);

}  // namespace tessera
