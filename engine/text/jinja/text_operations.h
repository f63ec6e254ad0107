// Operations on text that several filters and methods share. All keep the origin of every byte.
#pragma once

#include "engine/text/jinja/runtime.h"

namespace tessera::jinja {

enum class Side : uint8_t { kBoth, kLeft, kRight };

// Without white space, or the characters of `characters`, at its ends.
Text stripped(const Text& text, const Text* characters, Side side);

// Puts `part` behind `text`. Where only one of them is markup, the characters of the other that
// HTML knows are escaped, and `text` becomes markup.
void join(const Text& part, Text& text, Runtime& runtime);

// With `replacement` for the first `max_count` places of `pattern`, all of them if negative.
Text replaced(const Text& text, const Text& pattern, const Text& replacement, int64_t max_count,
              Runtime& runtime);

// Without their line ends.
std::vector<Text> split_lines(const Text& text, Runtime& runtime);

// kCapitalized: the first character upper and the others lower; kTitle: of each word.
enum class LetterCase : uint8_t { kUpper, kLower, kCapitalized };
// As Python has it. Throws Error where kCapitalized begins with one of the letters of which several
// characters become, such as a ligature.
Text with_case(const Text& text, LetterCase letter_case, const Call& call);

// The text; throws Error when it has other characters.
const Text& ascii_only(const Text& text, const Call& call);

}  // namespace tessera::jinja
