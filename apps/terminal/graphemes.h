// Text as a person sees it: grapheme clusters ("characters", an emoji of several code points among
// them) and the columns they take on a terminal.
#pragma once

#include <string_view>

namespace tessera {

// Where the grapheme cluster that begins at byte `at` ends, by the rules of Unicode's annex 29.
// `text` is UTF-8 and `at` is before its end.
size_t next_grapheme(std::string_view text, size_t at);

// Where the grapheme cluster that ends at byte `at` begins; `at` is after the beginning.
size_t previous_grapheme(std::string_view text, size_t at);

// Columns of a terminal that `text`, without control characters, takes. East Asian wide characters
// and emoji take two, combining marks none.
int display_width(std::string_view text);

}  // namespace tessera
