// Whether a GPU may run the kernels that were written for its architecture alone.
#pragma once

#include <cstdint>

namespace tessera {

enum class KernelChoice : uint8_t {
  kFastest,   // whatever is fastest on the device
  kPortable,  // what runs on every GPU, also where something faster exists: to compare
};

}  // namespace tessera
