// What an engine does and has done, in numbers.
#pragma once

#include <cstdint>

namespace tessera {

struct ServingStatistics {
  // Now.
  int64_t num_running = 0;   // generations that steps compute
  int64_t num_waiting = 0;   // generations that wait for their turn or for pages
  int64_t num_pages = 0;     // of the KV cache
  int64_t held_pages = 0;    // of these, held by sequences, also by those that are finished
  int64_t cached_pages = 0;  // held by nobody, and kept for prompts that begin with their tokens
  int64_t free_pages = 0;    // the rest
  // Since the engine was loaded.
  int64_t prompt_tokens_computed = 0;  // more than once where a sequence gave way to others
  int64_t prompt_tokens_cached = 0;    // found in the cache instead, likewise
  int64_t num_preemptions = 0;         // sequences that gave way
  int64_t num_steps = 0;               // launched
  int64_t num_tokens = 0;              // of answers
  int64_t drafted_tokens = 0;          // computed before they were known to be the next ones
  int64_t accepted_tokens = 0;         // of these, those that were
  // The longest time from one token of an answer to its next one, also where its sequence gave way
  // to others in between.
  double longest_token_wait_seconds = 0.0;
};

}  // namespace tessera
