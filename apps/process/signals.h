// SIGINT and SIGTERM as a flag that the program looks at between steps.
#pragma once

namespace tessera {

// From here on SIGINT and SIGTERM set a flag. A second SIGINT or SIGTERM, while the first is still
// pending, ends the process at once with 128 + signal. A closed pipe (SIGPIPE) and a file at its
// size limit (SIGXFSZ) are errors of write().
void install_signal_handlers();

// The signal that waits to be handled, or 0.
int pending_signal();
inline bool is_interrupted() { return pending_signal() != 0; }

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

// Returns when reading from `descriptor` would not wait any more. Throws Interrupted at a signal.
void wait_for_input(int descriptor);

// The same for writing. What can be written at once may be, also after a signal.
void wait_for_output(int descriptor);

}  // namespace tessera
