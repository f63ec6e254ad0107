// How long work is given up while it runs.
#pragma once

#include <functional>

namespace tessera {

// Whether nobody wants the result any more. Long work asks from time to time; empty: never.
using StopQuestion = std::function<bool()>;

// Thrown by work that asked and was told to stop. No std::exception: nothing has failed, and nobody
// is to report it.
struct Stopped {};

}  // namespace tessera
