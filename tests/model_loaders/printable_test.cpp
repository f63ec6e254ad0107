#include "model_loaders/printable.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace tessera {
namespace {

using std::string_view_literals::operator""sv;

TEST(Printable, KeepsAscii) { EXPECT_EQ(printable("model.norm {0} ~"), "model.norm {0} ~"); }

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(printable("a\0b\x1b[2J\x7f\n"sv), "a\\x00b\\x1b[2J\\x7f\\x0a");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");
}

TEST(Printable, KeepsTextOfAllLanguages) {
  EXPECT_EQ(printable("größe 模型 🦊 e\u0301"), "größe 模型 🦊 e\u0301");
}

// In many lines, as answers are: newline and tab stay, nothing is cut.
TEST(EscapeControlCharacters, SpellsOutEachUnprintableByte) {
  const auto bytes = [](std::string_view text) {
    std::string escaped;
    for (const char byte : text) {
      char hex[8];
      std::snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned char>(byte));
      escaped += hex;
    }
    return escaped;
  };
  for (const std::string_view text :
       {"\0"sv, "\x1b"sv, "\r"sv, "\x7f"sv, "\u0080"sv, "\u009b"sv, "\u009f"sv, "\u061c"sv,
        "\u200e"sv, "\u200f"sv, "\u2028"sv, "\u202a"sv, "\u202e"sv, "\u2066"sv, "\u2069"sv,
        // Not UTF-8: bytes that some terminals take for the C1 controls, half a character.
        "\x80"sv, "\x9b"sv, "\xff"sv, "\xe2\x80"sv}) {
    EXPECT_EQ(escape_control_characters(text), bytes(text));
    EXPECT_EQ(printable(text), bytes(text));
  }
}

TEST(EscapeControlCharacters, KeepsTheRest) {
  const std::string text = "a\n\tb \u00a0\u00ad مرحبا שלום 👩\u200d👧 \ufeff" + std::string(200, 'x');
  EXPECT_EQ(escape_control_characters(text), text);
  // A byte that is a control by itself belongs to a character here.
  EXPECT_EQ(escape_control_characters("\u045b \u20ac"), "\u045b \u20ac");
}

TEST(Printable, CutsLongText) {
  EXPECT_EQ(printable(std::string(119, 'x') + "ä"), std::string(119, 'x') + "...");
  EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
}

}  // namespace
}  // namespace tessera
