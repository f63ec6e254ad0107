// The escapes of a string literal.
#pragma once

#include <string>
#include <string_view>

#include "engine/text/jinja/source_position.h"

namespace tessera::jinja {

// `literal` without its quotes, with Python's escapes replaced. Throws Error at `position` for one
// that is unfinished or no character.
std::string unescape_string(std::string_view literal, SourcePosition position);

}  // namespace tessera::jinja
