// Ending the process at once, from a signal handler or without memory.
#pragma once

// Of a function that runs in a signal handler. Before a call that does not return, code that is
// built with AddressSanitizer asks for memory, and the handler may have interrupted what holds the
// lock for it.
#define TESSERA_IN_HANDLER __attribute__((no_sanitize_address))

namespace tessera {

// What a forced exit does first, so that a terminal is left as it was found; nullptr for nothing.
// It may only call what a signal handler may.
void before_forced_exit(void (*clean_up)());

// Runs no destructors and nothing that was registered with atexit.
[[noreturn]] void force_exit(int code) noexcept;

}  // namespace tessera
