// The terminal of a person who types into an editor: every key arrives at once and unseen, and
// pastes arrive between marks.
#pragma once

#include <termios.h>

namespace tessera {

// One at a time. Standard input and standard error are its terminal. Ctrl-C and Ctrl-Z still
// are signals.
class RawTerminal {
 public:
  // From here on the terminal is raw, except while the process is stopped or in the background.
  RawTerminal();
  // Gives the terminal back as it was.
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

  // Makes it raw again where it is not. In the background this waits for the terminal: the shell
  // shows the process as stopped until it is called back.
  static void ensure_raw();

  // What a Ctrl-C costs. Usually the kernel throws away what has been typed and nobody has read,
  // and with it what has been written and the terminal has not shown yet. With `keeps` it leaves
  // both: for while there is an answer, whose last words would be missing on the screen.
  static void keep_at_interrupt(bool keeps);

  // Whether the window has changed its size, or the process was stopped and continues, since the
  // last call of the same function.
  static bool take_resized();
  static bool take_continued();
  // Whether one of them would say so.
  static bool has_changed();
};

}  // namespace tessera
