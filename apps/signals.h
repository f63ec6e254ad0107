// SIGINT and SIGTERM as a flag that the program looks at between steps.
#pragma once

namespace tessera {

// From here on SIGINT and SIGTERM set a flag, and SIGPIPE is an error of write(). A second SIGINT
// or SIGTERM, while the first is still pending, ends the process at once with 128 + signal.
void install_signal_handlers();

// What that end does first, in a signal handler, so that a terminal is left as it was found;
// nullptr for nothing.
void before_forced_exit(void (*clean_up)());

// The signal that waits to be handled, or 0.
int pending_signal();

// Forgets a SIGINT that has been dealt with. A SIGTERM stays.
void clear_interrupt();

// For handlers, first of all: true after `signal` was passed on to the main thread, which alone
// waits for input. The kernel gives a signal of the process to any thread that does not hold it
// back.
bool pass_to_main_thread(int signal);

// Thrown to leave the program because of `signal`; main returns 128 + signal.
struct Interrupted {
  int signal;
};

void throw_if_interrupted();

}  // namespace tessera
