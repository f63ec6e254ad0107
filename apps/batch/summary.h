// What a batch came to, in a line for people and as JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/batch/answers_digest.h"
#include "apps/batch/counts.h"

namespace tessera {

// "1000 requests: 998 answered, 2 errors | prompt 349298 tok | gen 215731 tok, 11804.2 tok/s, 4
// preemptions, longest wait 0.213 s | 19.0 s | seed 42 | digest 0123456789abcdef": the longest time
// that an answer waited for its next token, `chosen_seed` if answers were drawn with it, and the
// first digits of the digest of all answers. A seed that was given needs no telling.
std::string summary_line(const BatchCounts& counts, std::optional<uint64_t> chosen_seed,
                         const AnswersDigest& digest);

// Rates are those from the first step to the last answer, in tokens per second.
void add_counts(const BatchCounts& counts, const AnswersDigest& digest,
                nlohmann::ordered_json& stats);

}  // namespace tessera
