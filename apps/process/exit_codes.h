// What the process tells its caller.
#pragma once

#include "engine/engine.h"

namespace tessera {

enum ExitCode : int {
  kExitOk = 0,
  kExitFatal = 1,
  kExitUsage = 2,
  kExitItemErrors = 3,     // finished, but some items failed
  kExitInterrupted = 130,  // SIGINT; SIGTERM gives 143
  kExitClosedPipe = 141,   // the reader of standard output has gone
};

// The command line asks for something that cannot be meant. main adds where to find the help.
class UsageError : public Error {
 public:
  using Error::Error;
};

}  // namespace tessera
