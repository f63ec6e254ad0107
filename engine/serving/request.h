// A sequence on its way to its answer, as the scheduler sees it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/serving/sequence.h"

namespace tessera {

class Generation;
class PromptLookup;

// A sequence that is to be answered, and what its steps depend on.
struct Request {
  Sequence* sequence = nullptr;
  Generation* generation = nullptr;  // only handed on: no decision depends on it
  int64_t max_length = 0;            // tokens of prompt and answer at which counting ends it
  // Last tokens that its penalties look at, 0 for all of them; nothing without penalties. With them
  // a draw needs to know all tokens before it.
  std::optional<int64_t> penalty_window = {};
  PromptLookup* lookup = nullptr;  // makes its drafts; null: it has none
};

// A sequence and which of its tokens to compute in a step.
struct ScheduledSequence {
  std::optional<Request> request;  // nothing once its generation has ended
  int64_t begin = 0;               // position of the first token
  int64_t num_tokens = 0;
  // The last of these tokens, if they are drafts: tokens that are supposed to follow the known
  // ones.
  std::vector<TokenId> drafts = {};
  bool completes = false;  // reaches the sequence's last token, so that a new one is drawn
  bool is_first = false;   // the first since the sequence runs: all tokens before were in the cache
  // For a token that is not known when the step is launched; see TokenChunk.
  std::optional<int64_t> draw_index = {};

  int64_t end() const { return begin + num_tokens; }
  int64_t known_end() const { return end() - std::ssize(drafts); }
  int64_t num_draws() const { return completes ? 1 + std::ssize(drafts) : 0; }
};

}  // namespace tessera
