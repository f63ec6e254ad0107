// Text of files, models and people made safe to show: nothing in it moves the cursor, renames the
// window, or shows characters in another order than they are stored.
#pragma once

#include <string>
#include <string_view>

namespace tessera {

// `text` with \xNN for every byte of control characters (also U+0080 to U+009F), of those that
// change the direction or order of writing, of line separators, and for bytes that are not UTF-8.
// Newline and tab stay.
std::string escape_control_characters(std::string_view text);

// The same for a name within a line: newline and tab are escaped too, and what follows 120 bytes is
// cut ("..."). A tensor's name may have megabytes.
std::string printable(std::string_view text);

}  // namespace tessera
