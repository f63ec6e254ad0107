// How long work on a text can be ended from outside.
#pragma once

#include <functional>

namespace tessera {

// Called now and then during long work, which ends when it throws.
using Pause = std::function<void()>;

}  // namespace tessera
