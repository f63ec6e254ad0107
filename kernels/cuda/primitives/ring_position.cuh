// A place in a ring of shared-memory stages that producers and consumers walk alike.
#pragma once

#include <cstdint>

namespace tessera {

// `parity` is that of the stage's barriers in this round; see primitives/mbarrier.cuh.
struct RingPosition {
  int stage = 0;
  uint32_t parity = 0;

  __device__ void advance(int count, int num_stages) {
    stage += count;  // at most num_stages
    if (stage >= num_stages) {
      stage -= num_stages;
      parity ^= 1;
    }
  }
};

}  // namespace tessera
