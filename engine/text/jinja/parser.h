// A template's text as statements.
#pragma once

#include <string_view>

#include "engine/text/jinja/syntax.h"

namespace tessera::jinja {

// Throws Error with line and column when `source` is no template. Filters, tests and methods that
// do not exist are found when they run: most templates name some that their chats never reach.
Statements parse_template(std::string_view source);

}  // namespace tessera::jinja
