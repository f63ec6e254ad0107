// Messages from the person: edited and remembered on a terminal, plain lines elsewhere.
#pragma once

#include <memory>
#include <string>

#include "apps/line_editor/input_bytes.h"
#include "apps/line_editor/terminal_editor.h"
#include "apps/terminal/console.h"

namespace tessera {

class LineEditor {
 public:
  // Edits where standard input and standard error are a terminal that can move its cursor. On any
  // other terminal the kernel lets a person correct a line. `history_path` is for InputHistory.
  LineEditor(const std::string& history_path, Completer completer, const Console& console);

  // Whether a person types; otherwise `prompt` is never shown.
  bool is_interactive() const { return is_interactive_; }

  // kInterrupted: a signal came, and is still pending; what had been typed is gone.
  InputLine read(const std::string& prompt);

  // Adds a message to the history.
  void remember(const std::string& text);

 private:
  InputLine read_plain(const std::string& prompt);

  const Console& console_;
  bool is_interactive_;
  bool is_first_line_ = true;  // is the next one
  InputBytes bytes_;
  std::unique_ptr<TerminalEditor> editor_;  // where there is such a terminal
};

}  // namespace tessera
