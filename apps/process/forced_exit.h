// Ending the process at once, from a signal handler or without memory.
#pragma once

namespace tessera {

// What a forced exit does first, so that a terminal is left as it was found; nullptr for nothing.
// It may only call what a signal handler may.
void before_forced_exit(void (*clean_up)());

// Runs no destructors and nothing that was registered with atexit.
[[noreturn]] void force_exit(int code) noexcept;

}  // namespace tessera
