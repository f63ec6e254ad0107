// RMSNorm over the blocks of the fused decode kernel. Each block publishes its shares of the sum of
// squares of a token's residual stream, and a warp that finishes a product of normalised features
// adds up all shares. The product's inputs have the norm's weight already; the scale is applied to
// the product's sums.
#pragma once

#include "kernels/cuda/decode_step/arguments.h"
#include "kernels/cuda/decode_step/exchange.cuh"

namespace tessera {

// Which of a token's kSquareShares shares is that of the rows dealt out to this block, and which is
// that of a claimed item (counted from the first item that is claimed).
__device__ inline int own_squares() { return static_cast<int>(blockIdx.x); }
__device__ inline int claimed_squares_of(int item) { return kMaxFusedBlocks + item; }

__device__ inline float squares_of(float row) { return row * row; }
__device__ inline float warp_sum(float value) {
  return warp_reduce(value, [](float a, float b) { return a + b; });
}
__device__ inline void publish_share(uint32_t* words, int share, float squares) {
  publish(words + share, squares);
}

// Adds up the squares of a warp's lanes and, if is_valid, publishes them as a share of the token's
// sum. Squares: float, or StreamSums where the residual stream has two parts.
template <int kTokens, typename Squares>
__device__ void publish_squares(uint32_t* words, int num_tokens, int token, Squares squares,
                                int share, bool is_valid) {
  constexpr int kShareWords = sizeof(Squares) / sizeof(uint32_t);
  squares = warp_sum(squares);
  const int replica = reread_lane_index();
  if (replica < exchange_replicas(kTokens) && is_valid) {
    publish_share(words + (replica * num_tokens + token) * kSquareShares * kShareWords, share,
                  squares);
  }
}

// RMSNorm's scale of hidden_size elements whose squares have this sum.
__device__ inline float norm_scale(const FusedDecodeArguments& arguments, float squares) {
  const auto hidden_size = static_cast<float>(arguments.products[kQkv].features);
  return rsqrtf(__fdividef(squares, hidden_size) + arguments.epsilon);
}

// Whether queries, keys and values go to attention without RMSNorm's scale, which attention then
// applies. The shares of squares arrive after the inputs that they belong to and, while the rings
// fill again, after the product's sums are complete. With several tokens, every warp of attention
// would ask for shares, which costs more than it saves (docs/experiments/decode-step.md). With a
// bias the product applies the scale itself: a bias can only be added to what has been scaled. So
// it does where the stream has two parts, since it adds them.
template <int kTokens, FusedInstance kInstance>
__device__ bool attention_applies_scale(const FusedDecodeArguments& arguments) {
  return kTokens == 1 && stream_parts(kInstance) == 1 &&
         (is_llama(kInstance) || arguments.block.has_qkv_bias == 0);
}

// A share that is missing.
template <typename Share>
__device__ Share missing_share() {
  if constexpr (sizeof(Share) == sizeof(uint4)) {
    return missing_words();
  } else {
    return kMissing;
  }
}

__device__ inline void add_share(float& sum, uint32_t share) { sum += __uint_as_float(share); }

// Waits for all shares of a token's sum of squares and adds them up. words: squares_in or
// squares_mid of the exchange. Called by all lanes of a warp. Share: uint32_t, the bits of a
// float, or uint4 where the residual stream has two parts; add_share(sum, share) adds one.
template <int kTokens, typename Share, typename Squares>
__device__ Squares wait_for_squares(const FusedDecodeArguments& arguments, const uint32_t* words,
                                    int token) {
  // How many shares a lane asks for at a time. The warp that finishes a single token's products has
  // no registers for more than five.
  constexpr int kAtOnce = kTokens == 1 ? 5 : 10;
  constexpr int kShareWords = sizeof(Share) / sizeof(uint32_t);
  static_assert(kSquareShares % (kAtOnce * kWarpSize) == 0);
  const auto num_blocks = static_cast<int>(gridDim.x);
  const int num_claimed = arguments.products[kDown].num_claimed(num_blocks);
  words += (own_replica<kTokens>() * arguments.num_tokens + token) * kSquareShares * kShareWords;
  Squares sum{};
#pragma unroll 1
  for (int first = 0; first < kSquareShares; first += kAtOnce * kWarpSize) {
    const auto share = [&](int i) { return first + i * kWarpSize + reread_lane_index(); };
    Share shares[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const bool is_used = share(i) < kMaxFusedBlocks ? share(i) < num_blocks
                                                      : share(i) - kMaxFusedBlocks < num_claimed;
      shares[i] = is_used ? missing_share<Share>() : Share{};
    }
    poll([&] {
      bool missing = false;
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) load_if_missing(shares[i], words + share(i) * kShareWords);
#pragma unroll
      for (const Share& one : shares) missing |= is_missing(one);
      return missing;
    });
#pragma unroll
    for (const Share& one : shares) add_share(sum, one);
  }
  return warp_sum(sum);
}

// RMSNorm's scale of a token.
template <int kTokens>
__device__ float wait_for_scale(const FusedDecodeArguments& arguments, const uint32_t* words,
                                int token) {
  return norm_scale(arguments, wait_for_squares<kTokens, uint32_t, float>(arguments, words, token));
}

}  // namespace tessera
