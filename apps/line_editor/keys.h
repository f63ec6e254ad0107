// What a person does on a terminal's keyboard, read from the bytes that the terminal makes of it.
#pragma once

#include <cstdint>
#include <string>

#include "apps/line_editor/input_bytes.h"

namespace tessera {

enum class Key : uint8_t {
  kText,   // a character, in KeyPress::text
  kPaste,  // everything that was pasted at once, in KeyPress::text
  kEnter,
  kNewline,  // Alt-Enter
  kTab,
  kLeft,
  kRight,
  kUp,
  kDown,
  kLineStart,
  kLineEnd,
  kWordLeft,
  kWordRight,
  kDeleteLeft,
  kDeleteRight,
  kDeleteRightOrEnd,  // Ctrl-D
  kDeleteWordLeft,
  kDeleteWordRight,
  kDeleteToLineStart,
  kDeleteToLineEnd,
  kYank,
  kClearScreen,
  kSignal,          // no key: a signal is pending
  kTerminalChange,  // no key: raw_terminal.h says what has changed
  kEndOfInput,      // the terminal is gone
  kUnknown,
};

struct KeyPress {
  Key key = Key::kUnknown;
  std::string text;  // UTF-8
};

// Waits for the next one.
KeyPress read_key(InputBytes& bytes);

}  // namespace tessera
