#include "model_loaders/printable.h"

#include <algorithm>

#include "model_loaders/utf8_character.h"

namespace tessera {
namespace {

constexpr size_t kMaxNameBytes = 120;
constexpr std::string_view kHexDigits = "0123456789abcdef";

struct CodePoints {
  char32_t first, last;
};

constexpr CodePoints kUnprintable[] = {
    {0x0000, 0x001F},    // C0 controls
    {0x007F, 0x009F},    // delete, C1 controls
    {0x061C, 0x061C},    // Arabic letter mark
    {0x200E, 0x200F},    // left-to-right and right-to-left marks
    {0x2028, 0x202E},    // line and paragraph separators; embeddings and overrides of direction
    {0x2066, 0x206F},    // isolates of direction; deprecated format characters
    {0xFFF9, 0xFFFB},    // annotations
    {0xE0001, 0xE0001},  // language tag
};

bool is_printable(const Utf8Character& character) {
  return character.kind == Utf8Character::Kind::kCharacter &&
         std::ranges::none_of(kUnprintable, [&](const CodePoints& range) {
           return character.code_point >= range.first && character.code_point <= range.last;
         });
}

std::string escaped_bytes(std::string_view bytes) {
  std::string escaped;
  for (const char character : bytes) {
    const auto byte = static_cast<unsigned char>(character);
    escaped += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
  }
  return escaped;
}

// `kept` are characters that stay although they are not printable.
std::string escape(std::string_view text, std::string_view kept) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const Utf8Character character = first_utf8_character(text);
    const std::string_view bytes = text.substr(0, character.num_bytes);
    if (is_printable(character) || kept.find(bytes) != std::string_view::npos) {
      escaped += bytes;
    } else {
      escaped += escaped_bytes(bytes);
    }
    text.remove_prefix(bytes.size());
  }
  return escaped;
}

// The characters of `text` that end within the first `max_bytes`.
std::string_view whole_characters(std::string_view text, size_t max_bytes) {
  size_t end = 0;
  while (end < text.size()) {
    const size_t next = end + first_utf8_character(text.substr(end)).num_bytes;
    if (next > max_bytes) break;
    end = next;
  }
  return text.substr(0, end);
}

}  // namespace

std::string escape_control_characters(std::string_view text) { return escape(text, "\n\t"); }

std::string printable(std::string_view text) {
  const std::string_view shown = whole_characters(text, kMaxNameBytes);
  return escape(shown, "") + (shown.size() < text.size() ? "..." : "");
}

}  // namespace tessera
