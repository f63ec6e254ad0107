#include "engine/text/utf8.h"

#include <algorithm>

#include "model_loaders/utf8_character.h"

namespace tessera {
std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const Utf8Character found = first_utf8_character(text.substr(offset));
    if (found.kind != Utf8Character::Kind::kCharacter) return offset;
    offset += found.num_bytes;
  }
  return std::nullopt;
}

size_t complete_utf8_prefix(std::string_view bytes) {
  for (size_t held = 1; held <= std::min<size_t>(3, bytes.size()); ++held) {
    const std::string_view tail = bytes.substr(bytes.size() - held);
    const Utf8Character found = first_utf8_character(tail);
    if (found.kind == Utf8Character::Kind::kUnfinished && found.num_bytes == held) {
      return bytes.size() - held;
    }
  }
  return bytes.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character found = first_utf8_character(text);
    valid += found.kind == Utf8Character::Kind::kCharacter ? text.substr(0, found.num_bytes)
                                                           : kReplacementCharacter;
    text.remove_prefix(found.num_bytes);
  }
  return valid;
}

}  // namespace tessera
