// What becomes of a prompt that does not fit the context.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>

namespace tessera {

enum class OnOverflow : uint8_t {
  kError,   // it is refused, with the numbers
  kChunk,   // it is read in parts (summarize)
  kMiddle,  // its beginning and its end are read, and what is left out is said
};

// "error", "chunk", "middle".
const char* to_string(OnOverflow choice);

// Adds --on-overflow; `choice` is its default. `can_chunk`: the command has a way to read in parts;
// elsewhere the word is refused with a hint.
CLI::Option* add_overflow_option(CLI::App& app, OnOverflow& choice, bool can_chunk);

}  // namespace tessera
