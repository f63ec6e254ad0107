// RMSNorm over blocks of the fused decode kernel: each leaves its shares of the residual stream's
// sum of squares in the exchange, and whoever needs a product of normalised features adds them up.
// Inputs have the norm's weight already; the scale multiplies the product's sums.
#pragma once

#include "kernels/cuda/decode_step/arguments.h"
#include "kernels/cuda/decode_step/exchange.cuh"

namespace tessera {

// The place of a block's own rows and of a claimed item, counted from the first, among the shares.
__device__ inline int own_squares() { return static_cast<int>(blockIdx.x); }
__device__ inline int claimed_squares_of(int item) { return kMaxFusedBlocks + item; }

// Adds up the squares that a warp's lanes have and leaves them as a share of the token's sum, if
// is_valid.
template <int kTokens>
__device__ void publish_squares(uint32_t* words, int num_tokens, int token, float squares,
                                int share, bool is_valid) {
  squares = warp_reduce(squares, [](float a, float b) { return a + b; });
  const int replica = reread_lane_index();
  if (replica < exchange_replicas(kTokens) && is_valid) {
    publish(words + (replica * num_tokens + token) * kSquareShares + share, squares);
  }
}

// Whether queries, keys and values go to attention without the scale, which attention applies. The
// shares of squares arrive after the inputs that they are of; while the rings fill again, up to
// 1.8 us after the sums of a 1B model's layer (H200). Of several tokens, as many warps as attention
// has would ask for them: 8 x 1,024 tokens of an 8B model lose 1.6 %.
constexpr bool attention_applies_scale(int tokens) { return tokens == 1; }

// The scale of a token's features, when all shares are there. words: squares_in or squares_mid of
// the exchange. Called by all lanes of a warp.
template <int kTokens>
__device__ float wait_for_scale(const FusedDecodeArguments& arguments, const uint32_t* words,
                                int token) {
  // Shares that a lane asks for at a time. The warp that finishes a single token's products has no
  // registers for more.
  constexpr int kAtOnce = kTokens == 1 ? 5 : 10;
  static_assert(kSquareShares % (kAtOnce * kWarpSize) == 0);
  const auto num_blocks = static_cast<int>(gridDim.x);
  const int num_claimed = arguments.products[kDown].num_claimed(num_blocks);
  words += (own_replica<kTokens>() * arguments.num_tokens + token) * kSquareShares;
  float sum = 0.0f;
#pragma unroll 1
  for (int first = 0; first < kSquareShares; first += kAtOnce * kWarpSize) {
    const auto share = [&](int i) { return first + i * kWarpSize + reread_lane_index(); };
    uint32_t shares[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_used = share(i) < kMaxFusedBlocks ? share(i) < num_blocks
                                                      : share(i) - kMaxFusedBlocks < num_claimed;
      shares[i] = is_used ? kMissing : 0;
    }
    poll([&] {
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) load_if_missing(shares[i], words + share(i));
#pragma unroll
      for (const uint32_t word : shares) missing |= is_missing(word);
      return missing;
    });
#pragma unroll
    for (const uint32_t word : shares) sum += __uint_as_float(word);
  }
  sum = warp_reduce(sum, [](float a, float b) { return a + b; });
  const auto hidden_size = static_cast<float>(arguments.products[kQkv].features);
  return rsqrtf(__fdividef(sum, hidden_size) + arguments.epsilon);
}

}  // namespace tessera
