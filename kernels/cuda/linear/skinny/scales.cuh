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

// Four neighbouring lanes of a warp add up the squares of one token, so that the warp has a group
// of eight tokens side by side.
inline constexpr int kTokenLanes = 4;
inline constexpr int kGroupTokens = kWarpSize / kTokenLanes;

// Computes the scales of kGroups groups at once. Of each lane's tokens it asks for kVectors vectors
// of four squares before it adds the first: each request takes the time of the L2 cache.
template <int kGroups, int kVectors>
__device__ inline void compute_scales_of_groups(float* scales, const SkinnyArguments& arguments) {
  const int lane = lane_index();
  const int num_vectors = arguments.num_squares / 4;
#pragma unroll 1
  for (int first = 0; first < arguments.num_tokens; first += kGroups * kGroupTokens) {
    const float* rows[kGroups];
    float sums[kGroups] = {};
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      const int token =
          min(first + group * kGroupTokens + lane / kTokenLanes, arguments.num_tokens - 1);
      rows[group] = arguments.squares + static_cast<int64_t>(token) * arguments.num_squares;
    }
#pragma unroll 1
    for (int begin = lane % kTokenLanes; begin < num_vectors; begin += kTokenLanes * kVectors) {
      Vector<float, 4> squares[kGroups][kVectors] = {};  // zeros past a row's end
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
          const int vector = begin + i * kTokenLanes;
          if (vector < num_vectors) squares[group][i] = load_vector<4>(rows[group], vector);
        }
      }
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
#pragma unroll
        for (int i = 0; i < kVectors; ++i) {
          const auto& four = squares[group][i].values;
          sums[group] += (four[0] + four[1]) + (four[2] + four[3]);
        }
      }
    }
#pragma unroll
    for (int group = 0; group < kGroups; ++group) {
      float sum = sums[group];
      sum += __shfl_xor_sync(kFullWarp, sum, 1);
      sum += __shfl_xor_sync(kFullWarp, sum, 2);
      const float mean = sum / static_cast<float>(arguments.in_features);
      const int token = first + group * kGroupTokens + lane / kTokenLanes;
      if (lane % kTokenLanes == 0 && token < arguments.num_tokens) {
        scales[token] = 1.0f / sqrtf(mean + arguments.epsilon);
      }
    }
  }
}

// scales[token] = 1 / sqrt(mean of squares + epsilon), float [num_tokens] in shared memory. Called
// by all lanes of a warp once the kernel before has written all squares. A lane has eight vectors
// of a token or more from 4,096 features on; with fewer, two groups keep as many requests under
// way. With more, 64 sequences of an 8B model take up to 0.5 % longer (docs/experiments/
// skinny-products.md).
__device__ inline void compute_scales(float* scales, const SkinnyArguments& arguments) {
  constexpr int kMostVectors = 8;
  if (arguments.num_squares / 4 >= kTokenLanes * kMostVectors) {
    compute_scales_of_groups<1, kMostVectors>(scales, arguments);
  } else {
    compute_scales_of_groups<2, kMostVectors / 2>(scales, arguments);
  }
  announce_scales();
}

}  // namespace tessera
