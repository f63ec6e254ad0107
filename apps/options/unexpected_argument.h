// Arguments that no command or flag takes, and flags with too few or too many values.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/process/exit_codes.h"

namespace tessera {

// What to tell of the first argument that nobody takes, after `command` was the last that was
// recognised, or the app itself. The hint is a guess: the command or flag whose name is most like
// it, or the flag that takes such a value; empty where nothing is similar.
UsageError unexpected_argument(const CLI::App& command, const std::string& argument);

// The same about a flag of several letters behind one dash that another program has: "-ngl 99" has
// been read as -n with the value "gl", and "-hf org/name" as -h. Nothing where no argument is one.
std::optional<UsageError> foreign_joined_flag(const CLI::App& command,
                                              const std::vector<std::string>& arguments);

// What CLI11 refuses, in tessera's words where its own are hard to read.
std::string parse_problem(const CLI::ParseError& error);

}  // namespace tessera
