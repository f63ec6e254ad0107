#include "model_loaders/utf8_character.h"

#include <optional>

namespace tessera {
namespace {

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

// The bits of the code point that a lead byte with that many continuations holds.
char32_t bits_of_lead(unsigned char byte, size_t num_continuations) {
  return num_continuations == 0 ? byte : byte & (0x3Fu >> num_continuations);
}

}  // namespace

Utf8Character first_utf8_character(std::string_view text) {
  using Kind = Utf8Character::Kind;
  const auto first = static_cast<unsigned char>(text[0]);
  const auto lead = classify(first);
  if (!lead) return {Kind::kInvalid, 1};
  char32_t code_point = bits_of_lead(first, lead->num_continuations);
  for (size_t i = 1; i <= lead->num_continuations; ++i) {
    if (i == text.size()) return {Kind::kUnfinished, i};
    const auto byte = static_cast<unsigned char>(text[i]);
    const unsigned char min = i == 1 ? lead->second_min : 0x80;
    const unsigned char max = i == 1 ? lead->second_max : 0xBF;
    if (byte < min || byte > max) return {Kind::kInvalid, i};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  return {Kind::kCharacter, lead->num_continuations + 1, code_point};
}

}  // namespace tessera
