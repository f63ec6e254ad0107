// Files that people give for text and that hold something else.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// How much of a file tells what it is.
inline constexpr size_t kTellingBytes = 4096;

// Throws Error when a file that begins with `begin` is of a format that people take for text, or is
// text in another encoding. The message names it, the hint says what makes UTF-8 text of it.
void refuse_foreign_text(std::string_view begin, const std::string& name);

}  // namespace tessera
