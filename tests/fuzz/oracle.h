// What must be true of every answer to untrusted input, beyond not crashing.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera {

// A reader broke its promise. Nothing catches it: libFuzzer takes it for a crash and keeps the
// input, GoogleTest reports it.
struct Violation : std::logic_error {
  using std::logic_error::logic_error;
};

// Throws Violation with `promise`, what should have held, when `held` is false.
void require(bool held, const std::string& promise);

// A message must be one line of UTF-8 that a terminal shows as it is (no control characters, none
// that change the direction of writing), and short however long the input was.
void require_readable(std::string_view message);

// Text that came out of a reader goes into answers and files: it must be UTF-8.
void require_utf8(std::string_view text, const std::string& what);

}  // namespace tessera
