// How busy the engine is, for people who watch.
#pragma once

#include <cstdint>
#include <optional>

namespace tessera {

struct ServingState {
  int64_t running = 0;                // sequences
  int64_t waiting = 0;                // sequences
  std::optional<double> kv_use;       // part of the KV pages that is taken
  std::optional<double> prefix_hits;  // part of the prompts' tokens that was cached
};

}  // namespace tessera
