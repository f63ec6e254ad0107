// RMSNorm's scales of the skinny product's tokens. A warp of its own computes them and has time
// until the first sums of the block are complete. If the multiplying warps did it themselves, they
// would begin later (docs/experiments/skinny-products.md).
#pragma once

#include <cstdint>

#include "kernels/cuda/linear/skinny/tiles.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {

// The threads that multiply and the warp that computes scales meet once, at the block's barrier 3.
inline constexpr int kScaleThreads = kWarpgroupSize + kWarpSize;
__device__ inline void announce_scales() {
  asm volatile("bar.arrive 3, %0;" ::"n"(kScaleThreads) : "memory");
}
__device__ inline void wait_for_scales() {
  asm volatile("bar.sync 3, %0;" ::"n"(kScaleThreads) : "memory");
}

// scales[token] = 1 / sqrt(mean of squares + epsilon), float [num_tokens] in shared memory. Four
// neighbouring lanes add up the squares of one token. Called by all lanes of a warp once the kernel
// before has written all squares.
__device__ inline void compute_scales(float* scales, const SkinnyArguments& arguments) {
  const int lane = lane_index();
#pragma unroll 2
  for (int first = 0; first < arguments.num_tokens; first += 8) {
    const int token = min(first + lane / 4, arguments.num_tokens - 1);
    const float* const squares =
        arguments.squares + static_cast<int64_t>(token) * arguments.num_squares;
    float sum = 0.0f;
#pragma unroll 8
    for (int i = lane % 4; i < arguments.num_squares / 4; i += 4) {
      const auto four = load_vector<4>(squares, i);
      sum += (four.values[0] + four.values[1]) + (four.values[2] + four.values[3]);
    }
    sum += __shfl_xor_sync(kFullWarp, sum, 1);
    sum += __shfl_xor_sync(kFullWarp, sum, 2);
    const float mean = sum / static_cast<float>(arguments.in_features);
    if (lane % 4 == 0) scales[token] = 1.0f / sqrtf(mean + arguments.epsilon);
  }
  announce_scales();
}

}  // namespace tessera
