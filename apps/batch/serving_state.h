// How busy the engine is, for people who watch.
#pragma once

#include <cstdint>

namespace tessera {

struct ServingState {
  int64_t running = 0;       // sequences
  int64_t waiting = 0;       // sequences
  double kv_use = 0.0;       // part of the KV pages that is taken
  double prefix_hits = 0.0;  // part of the prompts' tokens that was cached
};

}  // namespace tessera
