// What happens when the system gives no more memory: one line and an exit code, whoever asked.
#pragma once

namespace tessera {

// Writes `error: out of memory` and ends the process with kExitFatal, all without memory and from
// any thread. Output files are in order: what is written to them is written whole.
[[noreturn]] void end_out_of_memory() noexcept;

// From here on operator new calls it rather than throw. An exception would have to pass through
// libraries that are not made for it, and to be caught and told without memory. malloc calls it
// from the start (checked_malloc.cpp).
void end_when_out_of_memory();

}  // namespace tessera
