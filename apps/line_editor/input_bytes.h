// Standard input byte by byte, waited for so that no signal is missed.
#pragma once

#include <array>
#include <cstddef>

namespace tessera {

class InputBytes {
 public:
  // kSignal: one is pending (signals.h). kTerminalChange: raw_terminal.h says which.
  enum class Event { kByte, kEnd, kSignal, kTerminalChange, kTimeout };

  // Waits for a byte, for ever when `timeout_milliseconds` is negative.
  Event next(char& byte, int timeout_milliseconds = -1) {
    return next(byte, timeout_milliseconds, /*sees_changes=*/false);
  }
  // The same, ending as well when the terminal changes.
  Event next_or_change(char& byte) { return next(byte, -1, /*sees_changes=*/true); }

  // The byte that next() gave last comes again.
  void put_back() { --begin_; }

  // Whether next() would not have to wait.
  bool has_more() const;

  // Forgets what has been read ahead: a Ctrl-C takes back what was typed before it.
  void drop() { begin_ = end_; }

 private:
  Event next(char& byte, int timeout_milliseconds, bool sees_changes);
  // kByte: look again, something may have come.
  Event fill(int timeout_milliseconds, bool sees_changes);

  std::array<char, 4096> block_;
  size_t begin_ = 0, end_ = 0;  // what block_ still holds
};

}  // namespace tessera
