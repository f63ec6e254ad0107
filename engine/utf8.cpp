#include "engine/utf8.h"

#include <algorithm>
#include <cstdint>

namespace tessera {
namespace {

// The beginning of a text: a character, a part of one that the text ends in, or bytes that no
// character starts with.
struct Scan {
  enum class Kind : uint8_t { kCharacter, kUnfinished, kInvalid };
  Kind kind;
  size_t num_bytes;  // at least 1
};

// What may follow a lead byte (Unicode Standard, table 3-7).
struct LeadByte {
  size_t num_continuations = 0;
  unsigned char second_min = 0x80;  // range of the first continuation; the others are 80..BF
  unsigned char second_max = 0xBF;
};

std::optional<LeadByte> classify(unsigned char byte) {
  if (byte < 0x80) return LeadByte{0};
  if (byte < 0xC2) return std::nullopt;
  if (byte < 0xE0) return LeadByte{1};
  if (byte < 0xF0) {
    if (byte == 0xE0) return LeadByte{2, 0xA0};
    if (byte == 0xED) return LeadByte{2, 0x80, 0x9F};
    return LeadByte{2};
  }
  if (byte == 0xF0) return LeadByte{3, 0x90};
  if (byte < 0xF4) return LeadByte{3};
  if (byte == 0xF4) return LeadByte{3, 0x80, 0x8F};
  return std::nullopt;
}

// `text` is not empty.
Scan scan(std::string_view text) {
  const auto lead = classify(static_cast<unsigned char>(text[0]));
  if (!lead) return {Scan::Kind::kInvalid, 1};
  for (size_t i = 1; i <= lead->num_continuations; ++i) {
    if (i == text.size()) return {Scan::Kind::kUnfinished, i};
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char min = i == 1 ? lead->second_min : 0x80;
    const unsigned char max = i == 1 ? lead->second_max : 0xBF;
    if (byte < min || byte > max) return {Scan::Kind::kInvalid, i};
  }
  return {Scan::Kind::kCharacter, lead->num_continuations + 1};
}

}  // namespace

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t offset = 0; offset < text.size();) {
    const Scan found = scan(text.substr(offset));
    if (found.kind != Scan::Kind::kCharacter) return offset;
    offset += found.num_bytes;
  }
  return std::nullopt;
}

size_t complete_utf8_prefix(std::string_view bytes) {
  for (size_t held = 1; held <= std::min<size_t>(3, bytes.size()); ++held) {
    const std::string_view tail = bytes.substr(bytes.size() - held);
    const Scan found = scan(tail);
    if (found.kind == Scan::Kind::kUnfinished && found.num_bytes == held) {
      return bytes.size() - held;
    }
  }
  return bytes.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Scan found = scan(text);
    valid += found.kind == Scan::Kind::kCharacter ? text.substr(0, found.num_bytes)
                                                  : kReplacementCharacter;
    text.remove_prefix(found.num_bytes);
  }
  return valid;
}

}  // namespace tessera
