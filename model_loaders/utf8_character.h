// One character of UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

// What a text begins with: a character, a part of one that the text ends in, or bytes that no
// character starts with.
struct Utf8Character {
  enum class Kind : uint8_t { kCharacter, kUnfinished, kInvalid };
  Kind kind = Kind::kInvalid;
  size_t num_bytes = 1;     // at least 1
  char32_t code_point = 0;  // of a kCharacter
};

// `text` is not empty.
Utf8Character first_utf8_character(std::string_view text);

}  // namespace tessera
