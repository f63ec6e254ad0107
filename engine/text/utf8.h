// The little of UTF-8 that tokenising, streaming and input checks need.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model_loaders/pause.h"

namespace tessera {

// U+FFFD, what takes the place of bytes that are no character.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

// How many bytes at the beginning of `text` are ASCII.
size_t ascii_prefix(std::string_view text);

// Byte offset of the first byte sequence that is not well-formed UTF-8 (RFC 3629: no overlong
// forms, no surrogates, at most U+10FFFF), or nothing when all of `text` is well formed. `pause` is
// called every few milliseconds, here and below.
std::optional<size_t> find_invalid_utf8(std::string_view text, const Pause& pause = {});

// The longest prefix of `bytes` that ends at a character boundary: the number of bytes that are
// complete characters or certainly invalid. At most 3 trailing bytes are held back.
size_t complete_utf8_prefix(std::string_view bytes);

// `text` with every invalid byte sequence replaced by U+FFFD: one for each longest beginning of a
// character (the practice that the Unicode Standard, section 3.9, recommends).
std::string replace_invalid_utf8(std::string_view text, const Pause& pause = {});

// Bytes of the character that starts with `lead`, which begins a character of well-formed text.
constexpr size_t utf8_character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// Whether `byte` is inside a character of well-formed text, not at its beginning.
constexpr bool is_utf8_continuation(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
}

}  // namespace tessera
