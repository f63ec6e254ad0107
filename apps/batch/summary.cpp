#include "apps/batch/summary.h"

#include "apps/terminal/human_units.h"
#include "engine/engine.h"

namespace tessera {

std::string summary_line(const BatchCounts& counts, std::optional<uint64_t> chosen_seed,
                         const AnswersDigest& digest) {
  constexpr size_t kShownDigits = 16;
  std::string line = concat(counted(counts.total, "request"), ": ", counts.answered, " answered, ",
                            counted(counts.errors, "error"));
  if (counts.shortened > 0) {
    line += concat(" (", counts.shortened, " without the middle of the prompt)");
  }
  if (counts.skipped > 0) line += concat(", ", counts.skipped, " answered before");
  if (counts.done() < counts.total) line += concat(", ", counts.total - counts.done(), " to do");
  line += concat(" | prompt ", counts.prompt_tokens, " tok");
  if (counts.cached_prompt_tokens > 0)
    line += concat(" (", counts.cached_prompt_tokens, " cached)");
  line += concat(" | gen ", counts.generated_tokens, " tok");
  if (counts.generation_seconds > 0.0) {
    line += concat(", ", fixed(counts.generated_tokens_per_second(), 1), " tok/s");
  }
  if (counts.preemptions > 0) line += concat(", ", counted(counts.preemptions, "preemption"));
  if (counts.longest_token_wait_seconds > 0.0) {
    line += concat(", longest wait ", fixed(counts.longest_token_wait_seconds, 3), " s");
  }
  line += concat(" | ", fixed(counts.seconds, 1), " s");
  if (counts.draws_with_run_seed && chosen_seed) line += concat(" | seed ", *chosen_seed);
  return line + concat(" | digest ", digest.text().substr(0, kShownDigits));
}

void add_counts(const BatchCounts& counts, const AnswersDigest& digest,
                nlohmann::ordered_json& stats) {
  stats["requests"] = counts.total;
  stats["skipped"] = counts.skipped;
  stats["answered"] = counts.answered;
  stats["errors"] = counts.errors;
  stats["shortened"] = counts.shortened;
  stats["prompt_tokens"] = counts.prompt_tokens;
  stats["cached_prompt_tokens"] = counts.cached_prompt_tokens;
  stats["completion_tokens"] = counts.generated_tokens;
  stats["draws_with_seed"] = counts.draws_with_run_seed;
  stats["seconds"] = counts.seconds;
  stats["generation_seconds"] = counts.generation_seconds;
  stats["prompt_tokens_per_second"] = counts.prompt_tokens_per_second();
  stats["completion_tokens_per_second"] = counts.generated_tokens_per_second();
  stats["preemptions"] = counts.preemptions;
  stats["longest_token_wait_seconds"] = counts.longest_token_wait_seconds;
  stats["digest"] = digest.text();
}

}  // namespace tessera
