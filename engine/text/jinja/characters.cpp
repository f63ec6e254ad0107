#include "engine/text/jinja/characters.h"

#include <utf8proc.h>

#include <algorithm>

#include "model_loaders/utf8_character.h"

namespace tessera::jinja {

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::optional<bool> is_digit(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  if (category == UTF8PROC_CATEGORY_NO) return std::nullopt;
  return category == UTF8PROC_CATEGORY_ND;
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

size_t leading_space(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = character_at(text, end);
    if (!is_space(character.code_point)) break;
    end += character.num_bytes;
  }
  return end;
}

size_t character_before(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while (begin > 0 && end - begin < 4 && (static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) {
    --begin;
  }
  return begin;
}

size_t trailing_space_begin(std::string_view text) {
  size_t begin = text.size();
  while (begin > 0) {
    const size_t last = character_before(text, begin);
    if (!is_space(character_at(text, last).code_point)) break;
    begin = last;
  }
  return begin;
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
