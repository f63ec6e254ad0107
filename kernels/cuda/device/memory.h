// Owners of GPU memory and of page-locked host memory. The only place that asks CUDA for either.
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/tensor/buffer.h"

namespace tessera {

// Memory of the current device, 256-byte aligned. Throws Error with the purpose, the bytes asked
// for and the bytes free.
Buffer allocate_device_memory(size_t bytes, std::string_view purpose);

// Host memory that the GPU copies from and to without a detour.
Buffer allocate_pinned_memory(size_t bytes, std::string_view purpose);

}  // namespace tessera
