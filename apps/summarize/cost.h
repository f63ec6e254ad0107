// What a summary of several calls cost, and what it does not hold.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/summarize/report.h"

namespace tessera {

// "the summary was cut at 512 tokens; -n allows more".
std::string cut_text(int64_t num_tokens);

// "25 calls | prompt 203111 tok (412 cached) | gen 1204 tok | 41.2 s | seed 42"; after a signal
// "prompt 6120 of 203111 tok".
std::string cost_line(const Report& report);

// The same for programs: seconds, seed, numbers of calls and tokens, and "left_out" where there is
// something.
nlohmann::ordered_json cost_json(const Report& report);

// For people, a line for each: a signal came first, a call failed, summaries could not be merged,
// answers were cut, a part of a document was left out.
std::vector<std::string> loss_lines(const Report& report);

}  // namespace tessera
