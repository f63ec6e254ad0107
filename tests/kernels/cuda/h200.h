// What an H200 tells of itself, for tests of plans, which need no GPU.
#pragma once

#include "kernels/cuda/device/gpu_traits.h"

namespace tessera {

inline constexpr GpuTraits kH200{.compute_capability = 90,
                                 .num_multiprocessors = 132,
                                 .shared_bytes = 232448,
                                 .hopper_code_built = true};

}  // namespace tessera
