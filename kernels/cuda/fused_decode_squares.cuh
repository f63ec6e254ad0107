// RMSNorm over blocks of the fused decode kernel: each leaves its shares of the residual stream's
// sum of squares in the exchange, and whoever finishes a product of normalised features adds them
// up. Inputs have the norm's weight already; the scale multiplies the product's sums.
#pragma once

#include "kernels/cuda/fused_decode_exchange.cuh"
#include "kernels/cuda/fused_decode_plan.h"

namespace tessera {

// The place of a block's own rows and of a claimed item, counted from the first, among the shares.
__device__ inline int own_squares() { return static_cast<int>(blockIdx.x); }
__device__ inline int claimed_squares_of(int item) { return kMaxFusedBlocks + item; }

// Adds up the squares that a warp's lanes have and leaves them as a share of the token's sum.
__device__ inline void publish_squares(uint32_t* words, int token, float squares, int share) {
  squares = warp_reduce(squares, [](float a, float b) { return a + b; });
  if (reread_lane_index() == 0) publish(words + token * kSquareShares + share, squares);
}

// The lane's words of the shares of a sum of squares.
struct SquareWords {
  static constexpr int kCount = kSquareShares / kWarpSize;
  uint32_t words[kCount];

  __device__ void begin(int num_claimed_items) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool is_used = share(i) < kMaxFusedBlocks
                               ? share(i) < static_cast<int>(gridDim.x)
                               : share(i) - kMaxFusedBlocks < num_claimed_items;
      words[i] = is_used ? kMissing : 0;
    }
  }
  __device__ static int share(int i) { return i * kWarpSize + reread_lane_index(); }
  __device__ bool ask(const uint32_t* source) {
    bool missing = false;
#pragma unroll
    for (int i = 0; i < kCount; ++i) load_if_missing(words[i], source + share(i));
#pragma unroll
    for (const uint32_t word : words) missing |= is_missing(word);
    return missing;
  }
  __device__ float sum(const uint32_t* source) {
    poll([&] { return ask(source); });
    float sum = 0.0f;
#pragma unroll
    for (const uint32_t word : words) sum += __uint_as_float(word);
    return warp_reduce(sum, [](float a, float b) { return a + b; });
  }
};

__device__ inline float root_mean_square_scale(float squares, int hidden_size, float epsilon) {
  return rsqrtf(__fdividef(squares, static_cast<float>(hidden_size)) + epsilon);
}

}  // namespace tessera
