// Which of the kernels that compute an operation a device may run.
#pragma once

#include <cstdint>

namespace tessera {

enum class KernelChoice : uint8_t {
  kFastest,   // whatever is fastest on the device
  kPortable,  // what runs on every GPU, also where something faster exists: to compare
  // What computes a token the same bit by bit, whatever else a step holds and in whatever chunks
  // its prompt comes: every sum is taken in an order that depends on the token alone. Slower.
  kBatchInvariant,
  // As kFastest, and where there are such kernels, the products in the attention of prompts are
  // float8_e4m3, over keys and values of the same type. Outputs are then off by some percent of
  // their size (docs/experiments/attention.md has the errors).
  kFp8Attention,
};

}  // namespace tessera
