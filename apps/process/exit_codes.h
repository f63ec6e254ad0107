// What the process tells its caller.
#pragma once

#include "engine/engine.h"

namespace tessera {

enum ExitCode : int {
  kExitOk = 0,
  kExitFatal = 1,
  kExitUsage = 2,
  kExitItemErrors = 3,    // finished, but some items failed
  kExitClosedPipe = 141,  // the reader of standard output has gone
};

// Of a process that a signal has ended, as shells say it: 130 after SIGINT, 143 after SIGTERM.
constexpr int exit_code_of(int signal) { return 128 + signal; }

// The command line asks for something that cannot be meant. main adds where to find the help.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace tessera
