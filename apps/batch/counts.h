// What a run of a batch came to.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct BatchCounts {
  int64_t total = 0;    // requests in the input, or in this shard of it
  int64_t skipped = 0;  // answered by an earlier run
  int64_t answered = 0;
  int64_t errors = 0;
  std::string first_error;       // what is wrong with the first line of these
  int64_t first_error_line = 0;  // from 1
  int64_t shortened = 0;         // of the answered, by prompts without their middle
  // Of this run's answers, not of errors: a prompt once, what was generated for all its choices.
  int64_t prompt_tokens = 0;
  int64_t cached_prompt_tokens = 0;  // of these, found in the KV cache
  int64_t generated_tokens = 0;
  bool draws_with_run_seed = false;         // any of these answers
  double seconds = 0.0;                     // with the model loaded, to the last line
  double generation_seconds = 0.0;          // from the first step to the last answer
  int64_t preemptions = 0;                  // sequences that gave way to others when pages ran out
  double longest_token_wait_seconds = 0.0;  // from one token of an answer to its next one

  int64_t done() const { return skipped + answered + errors; }
  double prompt_tokens_per_second() const { return per_second(prompt_tokens); }
  double generated_tokens_per_second() const { return per_second(generated_tokens); }

 private:
  double per_second(int64_t tokens) const {
    return generation_seconds > 0.0 ? static_cast<double>(tokens) / generation_seconds : 0.0;
  }
};

}  // namespace tessera
