#include "tests/fuzz/oracle.h"

#include <algorithm>

#include "engine/text/utf8.h"

namespace tessera {
namespace {

// Several quoted names of at most 120 bytes, each byte as up to four characters, and a path.
constexpr size_t kMaxMessageBytes = 4096;

// The characters U+0080 to U+009F are a byte C2 and one below A0: the controls of ISO 6429.
bool has_c1_control(std::string_view text) {
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\xC2' && static_cast<unsigned char>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

// U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: a file name written with them reads
// as another one.
bool has_direction_mark(std::string_view text) {
  constexpr std::string_view kMarks[] = {"\xD8\x9C",     "\xE2\x80\x8E", "\xE2\x80\x8F",
                                         "\xE2\x80\xAA", "\xE2\x80\xAB", "\xE2\x80\xAC",
                                         "\xE2\x80\xAD", "\xE2\x80\xAE", "\xE2\x81\xA6",
                                         "\xE2\x81\xA7", "\xE2\x81\xA8", "\xE2\x81\xA9"};
  return std::ranges::any_of(
      kMarks, [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

}  // namespace

void require(bool held, const std::string& promise) {
  if (!held) throw Violation(promise);
}

void require_readable(std::string_view message) {
  const auto is_control = [](char character) {
    return static_cast<unsigned char>(character) < 0x20 || character == 0x7F;
  };
  require(std::ranges::none_of(message, is_control), "a message has no control characters");
  require(!find_invalid_utf8(message), "a message is UTF-8");
  require(!has_c1_control(message), "a message has no C1 control characters");
  require(!has_direction_mark(message), "a message does not change the direction of writing");
  require(message.size() <= kMaxMessageBytes, "a message is short");
}

void require_utf8(std::string_view text, const std::string& what) {
  require(!find_invalid_utf8(text), what + " is UTF-8");
}

}  // namespace tessera
