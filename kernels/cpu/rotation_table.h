// The rotations of rotary position embedding (Su et al. 2021).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cpu/thread_pool.h"

namespace tessera {

// Cosines and sines of a step's tokens. All layers of a step ask for the same ones, which are
// computed for the first: in double precision they take a third of a short step's elementwise work.
class RotationTable {
 public:
  // [num_tokens, 2, num_frequencies]: of every token the cosines, then the sines of its position
  // times the frequencies. Valid until the next call.
  const float* rotations(std::span<const int32_t> positions, std::span<const float> frequencies,
                         ThreadPool& pool);

 private:
  // What rotations_ were computed for.
  std::vector<int32_t> positions_;
  std::vector<float> frequencies_;
  std::vector<float> rotations_;
};

}  // namespace tessera
