#include "model_loaders/byte_level.h"

#include <array>

#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

constexpr size_t kAlphabetEnd = 0x100 + 68;  // code points

// Bytes that are visible characters of Latin-1 are written as these, the 68 others, in order, as
// U+0100 and on. -1: no byte.
constexpr std::array<int, kAlphabetEnd> make_bytes() {
  std::array<int, kAlphabetEnd> bytes = {};
  size_t next = 0x100;
  for (int byte = 0; byte < 0x100; ++byte) {
    const bool is_visible = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    if (!is_visible) bytes[static_cast<size_t>(byte)] = -1;
    bytes[is_visible ? static_cast<size_t>(byte) : next++] = byte;
  }
  return bytes;
}

constexpr std::array<int, kAlphabetEnd> kBytes = make_bytes();

// All of the alphabet are below U+0800.
void append_character(size_t code_point, std::string& text) {
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
    return;
  }
  text += static_cast<char>(0xC0 | code_point >> 6);
  text += static_cast<char>(0x80 | (code_point & 0x3F));
}

std::array<std::string, 256> make_characters() {
  std::array<std::string, 256> characters;
  for (size_t code_point = 0; code_point < kAlphabetEnd; ++code_point) {
    if (kBytes[code_point] < 0) continue;
    append_character(code_point, characters[static_cast<size_t>(kBytes[code_point])]);
  }
  return characters;
}

}  // namespace

std::optional<std::string> bytes_of_byte_level(std::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    const Utf8Character character = first_utf8_character(piece);
    if (character.code_point >= kAlphabetEnd || kBytes[character.code_point] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kBytes[character.code_point]);
    piece.remove_prefix(character.num_bytes);
  }
  return bytes;
}

std::string byte_level_of(std::string_view bytes) {
  static const std::array<std::string, 256> kCharacters = make_characters();
  std::string text;
  for (const char byte : bytes) text += kCharacters[static_cast<unsigned char>(byte)];
  return text;
}

}  // namespace tessera
