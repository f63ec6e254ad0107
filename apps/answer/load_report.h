// Where the time went from the start of the process to its first token.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/engine.h"

namespace tessera {

// Seconds since the kernel started this process: also what loading shared libraries took, which
// main cannot see. To 0.01 s; 0 where /proc does not tell.
double process_age_seconds();

// The way to the first token. The parts add up to total_seconds.
struct FirstToken {
  double total_seconds = 0.0;   // from the start of the process
  double load_seconds = 0.0;    // Engine::load
  double prompt_seconds = 0.0;  // computing the prompt

  // What is neither: shared libraries, the command line, the prompt's text.
  double start_seconds() const { return total_seconds - load_seconds - prompt_seconds; }
  // "1.31 s = start 0.07 + load 1.21 + prompt 0.03"
  std::string text() const;
};

// For a generation that has just returned, the first of the process.
FirstToken first_token(const Engine& engine, const GenerationResult& result);

// The phases of LoadTimings in seconds, by name.
nlohmann::ordered_json load_json(const LoadTimings& timings);

}  // namespace tessera
