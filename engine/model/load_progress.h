// How a load tells where it stands.
#pragma once

#include <cstdint>
#include <functional>

namespace tessera {

// For a progress bar: called between the phases of a load, for every few megabytes of weights, and
// while the scales of 8-bit keys and values are chosen. What it throws ends the load.
using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

}  // namespace tessera
