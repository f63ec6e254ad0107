#include "engine/text/jinja/characters.h"

#include <algorithm>

#include "model_loaders/utf8_character.h"

namespace tessera::jinja {

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

void append_utf8(std::string& bytes, char32_t code_point) {
  const auto continuation = [&](int shift) {
    bytes += static_cast<char>(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    bytes += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    bytes += static_cast<char>(0xC0 | code_point >> 6);
    continuation(0);
  } else if (code_point < 0x10000) {
    bytes += static_cast<char>(0xE0 | code_point >> 12);
    continuation(6);
    continuation(0);
  } else {
    bytes += static_cast<char>(0xF0 | code_point >> 18);
    continuation(12);
    continuation(6);
    continuation(0);
  }
}

Character character_at(std::string_view text, size_t offset) {
  const auto byte = static_cast<unsigned char>(text[offset]);
  if (byte < 0x80) return {byte, 1};
  const Utf8Character found = first_utf8_character(text.substr(offset));
  if (found.kind != Utf8Character::Kind::kCharacter) return {byte, 1};
  return {found.code_point, found.num_bytes};
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

std::vector<size_t> character_offsets(std::string_view text) {
  std::vector<size_t> offsets;
  for (size_t offset = 0; offset < text.size();) {
    offsets.push_back(offset);
    offset += character_at(text, offset).num_bytes;
  }
  offsets.push_back(text.size());
  return offsets;
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char byte) { return static_cast<signed char>(byte) >= 0; });
}

}  // namespace tessera::jinja
