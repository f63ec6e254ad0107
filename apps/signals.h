// SIGINT and SIGTERM as a flag that the program looks at between steps.
#pragma once

namespace tessera {

// From here on SIGINT and SIGTERM set a flag. A second SIGINT or SIGTERM, while the first is still
// pending, ends the process at once with 128 + signal. A closed pipe (SIGPIPE) and a file at its
// size limit (SIGXFSZ) are errors of write().
void install_signal_handlers();

// The signal that waits to be handled, or 0.
int pending_signal();

// Forgets a SIGINT that has been dealt with. A SIGTERM stays.
void clear_interrupt();

// Thrown to leave the program because of `signal`; main returns 128 + signal.
struct Interrupted {
  int signal;
};

void throw_if_interrupted();

}  // namespace tessera
