// How a load tells where it stands.
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

// For a progress bar: called between the phases of a load and for every few megabytes of weights.
// What it throws ends the load.
using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

}  // namespace tessera
