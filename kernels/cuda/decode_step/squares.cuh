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

// Adds up the squares of a warp's lanes and, if is_valid, publishes them as a share of the token's
// sum.
template <int kTokens>
__device__ void publish_squares(uint32_t* words, int num_tokens, int token, float squares,
                                int share, bool is_valid) {
  squares = warp_reduce(squares, [](float a, float b) { return a + b; });
  const int replica = reread_lane_index();
  if (replica < exchange_replicas(kTokens) && is_valid) {
    publish(words + (replica * num_tokens + token) * kSquareShares + share, squares);
  }
}

// Whether queries, keys and values go to attention without RMSNorm's scale, which attention then
// applies. The shares of squares arrive after the inputs that they belong to and, while the rings
// fill again, after the product's sums are complete. With several tokens, every warp of attention
// would ask for shares, which costs more than it saves (docs/experiments/decode-step.md). With a
// bias the product applies the scale itself: a bias can only be added to what has been scaled.
template <int kTokens, FusedInstance kInstance>
__device__ bool attention_applies_scale(const FusedDecodeArguments& arguments) {
  return kTokens == 1 && (is_llama(kInstance) || arguments.block.has_qkv_bias == 0);
}

// Waits for all shares of a token's sum of squares and returns RMSNorm's scale of the token. words:
// squares_in or squares_mid of the exchange. Called by all lanes of a warp.
template <int kTokens, FusedInstance kInstance>
__device__ float wait_for_scale(const FusedDecodeArguments& arguments, const uint32_t* words,
                                int token) {
  // How many shares a lane asks for at a time. The warp that finishes a single token's products has
  // no registers for more than five. The instance with norms of what the halves add gives it more
  // registers and asks for ten, because there all blocks wait for shares.
  constexpr int kAtOnce = kTokens == 1 && kInstance != FusedInstance::kAnyBlock ? 5 : 10;
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

// RMSNorm's scale of a query or key head. Each of kLanes neighbouring lanes has the sum of squares
// of some of the head's elements, before these are multiplied by `scale`.
template <int kHeadDim, int kLanes>
__device__ float head_norm_scale(const FusedDecodeArguments& arguments, float squares,
                                 float scale) {
#pragma unroll
  for (int distance = 1; distance < kLanes; distance *= 2) {
    squares += __shfl_xor_sync(kFullWarp, squares, distance);
  }
  return rsqrtf(squares * scale * scale / kHeadDim + arguments.epsilon);
}

// The squares from which q/k norm's scales are computed, of the queries and of the newest key. A
// lane asks for those of some items of its query's head, and for those of one item of the key's
// head.
template <int kHeadDim>
struct HeadSquares {
  static constexpr int kItems = kHeadDim / kItemRows;
  static constexpr int kLaneItems = kItems / 4;  // four lanes have elements of a query
  uint32_t query[kLaneItems];
  uint32_t key;
  int query_word;  // offsets of these words in the copy
  int key_word;

  __device__ void load_missing(const uint32_t* copy) {
#pragma unroll
    for (int i = 0; i < kLaneItems; ++i) load_if_missing(query[i], copy + query_word + i);
    load_if_missing(key, copy + key_word);
  }
  __device__ bool has_missing() const {
    bool missing = is_missing(key);
#pragma unroll
    for (const uint32_t word : query) missing |= is_missing(word);
    return missing;
  }
};

}  // namespace tessera
