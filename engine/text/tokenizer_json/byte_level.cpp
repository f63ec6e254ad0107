#include "engine/text/tokenizer_json/byte_level.h"

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

}  // namespace tessera
