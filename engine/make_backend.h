// Which device an engine runs on.
#pragma once

#include <memory>

#include "engine/options.h"
#include "kernels/backend.h"

namespace tessera {

// The backend that the options mean on this machine. Throws Error when CUDA is asked for and
// absent.
std::unique_ptr<Backend> make_backend(const EngineOptions& options);

}  // namespace tessera
