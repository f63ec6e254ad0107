// Arguments that no command or flag takes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "apps/process/exit_codes.h"

namespace tessera {

// What to tell of the first argument that `command` has no use for, with a guess in the hint: the
// command or flag whose name is most like it, or the flag that takes such a value.
UsageError unexpected_argument(const CLI::App& command, const std::string& argument);

}  // namespace tessera
