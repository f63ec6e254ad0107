// Text that comes from a model file, made safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// `text` with every byte outside printable ASCII written as \xNN and cut after 120 bytes ("...").
// A tensor name may hold escape sequences, NUL or megabytes.
std::string printable(std::string_view text);

}  // namespace tessera
