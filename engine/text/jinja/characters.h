// Characters of well-formed UTF-8: what Python's strings count, index and strip.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::jinja {

// White space as str.isspace() has it, Unicode's and the separators of ASCII.
bool is_space(char32_t code_point);

// As str.isprintable() has it: no separator but the space, no control and nothing unassigned.
bool is_printable(char32_t code_point);

// As str.isdigit() has it; nothing for numbers of which the category does not tell, such as ² and
// ½.
std::optional<bool> is_digit(char32_t code_point);

void append_utf8(std::string& bytes, char32_t code_point);

// The code point at `offset` and how many bytes it takes; a byte that is no character stands for
// itself.
struct Character {
  char32_t code_point = 0;
  size_t num_bytes = 1;
};
Character character_at(std::string_view text, size_t offset);

size_t count_characters(std::string_view text);

// How many bytes of white space are at the beginning, and where that at the end begins.
size_t leading_space(std::string_view text);
size_t trailing_space_begin(std::string_view text);

// Where the character before `end` > 0 begins.
size_t character_before(std::string_view text, size_t end);

// Offsets at which characters begin, and text.size().
std::vector<size_t> character_offsets(std::string_view text);

bool is_ascii(std::string_view text);

}  // namespace tessera::jinja
