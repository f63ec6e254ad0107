#include "engine/text/jinja/string_literal.h"

#include <algorithm>
#include <charconv>

#include "engine/text/jinja/characters.h"

namespace tessera::jinja {
namespace {

constexpr std::string_view kEscapes = "\\'\"abfnrtv";
constexpr std::string_view kEscaped = "\\'\"\a\b\f\n\r\t\v";

size_t num_hex_digits(char escape) {
  return escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
}

char32_t parse_digits(std::string_view digits, int base, SourcePosition position) {
  uint32_t number = 0;
  const char* const end = digits.data() + digits.size();
  const auto result = std::from_chars(digits.data(), end, number, base);
  const bool is_surrogate = number >= 0xD800 && number < 0xE000;
  if (result.ec != std::errc() || result.ptr != end || number > 0x10FFFF || is_surrogate) {
    throw error_at(position, "an escape in this string is no character");
  }
  return number;
}

size_t num_octal_digits(std::string_view rest) {
  size_t count = 0;
  while (count < std::min<size_t>(3, rest.size()) && rest[count] >= '0' && rest[count] <= '7') {
    ++count;
  }
  return count;
}

// Appends what the escape at the beginning of `rest` (behind its backslash) means, and returns how
// many bytes it takes.
size_t append_escape(std::string_view rest, SourcePosition position, std::string& text) {
  if (const size_t place = kEscapes.find(rest[0]); place != std::string_view::npos) {
    text += kEscaped[place];
    return 1;
  }
  if (rest[0] == '\n') return 1;
  if (rest[0] == 'N') throw error_at(position, "names of characters are not supported");
  if (const size_t count = num_octal_digits(rest); count > 0) {
    append_utf8(text, parse_digits(rest.substr(0, count), 8, position));
    return count;
  }
  if (const size_t count = num_hex_digits(rest[0]); count > 0) {
    if (rest.size() <= count) throw error_at(position, "an escape in this string is unfinished");
    append_utf8(text, parse_digits(rest.substr(1, count), 16, position));
    return count + 1;
  }
  text += '\\';  // Python keeps what it does not know.
  return 0;
}

}  // namespace

std::string unescape_string(std::string_view literal, SourcePosition position) {
  std::string text;
  for (size_t i = 0; i < literal.size();) {
    if (literal[i] == '\\' && i + 1 < literal.size()) {
      i += 1 + append_escape(literal.substr(i + 1), position, text);
    } else {
      text += literal[i++];
    }
  }
  return text;
}

}  // namespace tessera::jinja
