#include "engine/text/utf8.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

// After `count` characters: every few milliseconds.
void pause_if_due(const Pause& pause, size_t count) {
  constexpr size_t kCharacters = size_t{1} << 18;
  if (count % kCharacters == 0 && pause) pause();
}

}  // namespace

size_t ascii_prefix(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  size_t count = 0;
  for (uint64_t bytes = 0; count + sizeof(bytes) <= text.size(); count += sizeof(bytes)) {
    std::memcpy(&bytes, text.data() + count, sizeof(bytes));
    if ((bytes & kHighBits) != 0) break;
  }
  while (count < text.size() && static_cast<unsigned char>(text[count]) < 0x80) ++count;
  return count;
}

std::optional<size_t> find_invalid_utf8(std::string_view text, const Pause& pause) {
  size_t count = 0;  // of characters that are not ASCII
  for (size_t offset = ascii_prefix(text); offset < text.size();
       offset += ascii_prefix(text.substr(offset))) {
    const Utf8Character found = first_utf8_character(text.substr(offset));
    if (found.kind != Utf8Character::Kind::kCharacter) return offset;
    offset += found.num_bytes;
    pause_if_due(pause, ++count);
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

std::string replace_invalid_utf8(std::string_view text, const Pause& pause) {
  std::string valid;
  valid.reserve(text.size());
  for (size_t count = 1; !text.empty(); ++count) {
    pause_if_due(pause, count);
    const Utf8Character found = first_utf8_character(text);
    valid += found.kind == Utf8Character::Kind::kCharacter ? text.substr(0, found.num_bytes)
                                                           : kReplacementCharacter;
    text.remove_prefix(found.num_bytes);
  }
  return valid;
}

}  // namespace tessera
