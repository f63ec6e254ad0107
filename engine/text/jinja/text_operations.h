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

// As Python's strings have them. kCapitalized: the first character is a title's and the others are
// lower; kTitle: of each word, which begins behind every character without a case.
enum class LetterCase : uint8_t { kUpper, kLower, kCapitalized, kTitle };
Text with_case(const Text& text, LetterCase letter_case, Runtime& runtime);
// Whether there are letters, and all of them are kUpper or kLower.
bool has_only_case(std::string_view text, LetterCase letter_case, Runtime& runtime);

}  // namespace tessera::jinja
