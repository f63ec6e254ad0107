// What can be known about the terminal behind a descriptor.
#pragma once

#include <cstdint>
#include <string_view>

namespace tessera {

// What makes text dim, and what ends every colour.
inline constexpr std::string_view kDim = "\x1b[2m";
inline constexpr std::string_view kPlain = "\x1b[0m";

enum class ColorChoice : uint8_t { kAuto, kAlways, kNever };

bool is_terminal(int descriptor);

// kAuto: on a terminal, unless TERM is "dumb" or NO_COLOR is set and not empty (no-color.org).
bool uses_color(int descriptor, ColorChoice choice);

// Columns; 80 when they cannot be known.
int terminal_width(int descriptor);

}  // namespace tessera
