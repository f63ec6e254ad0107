// Standard output and other descriptors, written so that no failure goes unnoticed.
#pragma once

#include <string>
#include <string_view>

#include "engine/engine.h"

namespace tessera {

// The reader of a pipe has gone: not an error to talk about. main returns kExitClosedPipe.
struct OutputClosed {};

// Standard output cannot be written, so nothing more can be said there.
class OutputError : public Error {
 public:
  using Error::Error;
};

// Writes all of `data`, unbuffered. Throws OutputClosed on EPIPE, Interrupted at a signal while the
// reader takes nothing, else Error naming `name` and the reason.
void write_all(int descriptor, std::string_view data, const std::string& name);

// Writes to standard output. Throws OutputClosed or OutputError.
void print(std::string_view text);

// The same for text a model generated: a terminal gets it without control characters, which could
// otherwise move the cursor or rename the window. `is_dim`: in the colour for lesser weight.
void print_generated(std::string_view text, bool is_dim = false);

}  // namespace tessera
