// memcpy for the large: one thread copies at about 10 GB/s, the link to the GPU takes 50.
#pragma once

#include <cstddef>

namespace tessera {

// Copies `bytes` from `source` to `destination`, by several threads when there is enough to copy.
void host_copy(std::byte* destination, const std::byte* source, size_t bytes);

}  // namespace tessera
