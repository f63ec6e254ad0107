// Names of files as people type them behind a command, who are used to a shell.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// The path without one pair of quotes around it, and with the home folder in place of "~/".
std::string typed_path(std::string_view typed);

}  // namespace tessera
