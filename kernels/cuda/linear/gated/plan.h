// How the product of gate and up is divided for 65 to 1,024 tokens. Plain arithmetic, no CUDA.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

// A tile is the results of so many tokens and of GatedPlan's tile_features output features.
inline constexpr int kGatedTileTokens = 128;

// Blocks work in pairs, each on a tile of its own. What both tiles need, each block brings half of
// to both.
enum class PairShares : uint8_t {
  kWeights,  // the tiles have the same features, and tokens that follow each other
  kTokens,   // the tiles have the same tokens, and features that follow each other
};

struct GatedPlan {
  int tile_features = 0;
  PairShares pair_shares = PairShares::kWeights;

  constexpr bool operator==(const GatedPlan&) const = default;

  constexpr int64_t pair_tokens() const {
    return pair_shares == PairShares::kWeights ? 2 * kGatedTileTokens : kGatedTileTokens;
  }
  constexpr int64_t pair_features() const {
    return pair_shares == PairShares::kTokens ? 2 * tile_features : tile_features;
  }
};

// The plans that are built. Of several that take as long, the first is chosen.
inline constexpr GatedPlan kGatedPlans[] = {{128, PairShares::kWeights}, {128, PairShares::kTokens},
                                            {112, PairShares::kWeights}, {112, PairShares::kTokens},
                                            {96, PairShares::kWeights},  {96, PairShares::kTokens}};

// A pair of blocks for each two multiprocessors computes pairs of tiles in rounds.
struct GatedRounds {
  int64_t num_pairs;
  int64_t num_rounds;
};
constexpr GatedRounds gated_rounds(const GatedPlan& plan, int64_t num_tokens,
                                   int64_t intermediate_size, int num_multiprocessors) {
  const int64_t num_pairs = ceil_divide(num_tokens, plan.pair_tokens()) *
                            ceil_divide(intermediate_size, plan.pair_features());
  return {num_pairs, ceil_divide<int64_t>(num_pairs, num_multiprocessors / 2)};
}

// A round takes as long as a tile has features, and what about 64 more would take: between 36 and
// 125 on an H100, where rounds of tiles of 128, 112 and 96 features take 44.6, 42.5 and 39 us with
// 1,024 tokens of an 8B model. So the features of a tile are chosen by how well pairs fill the last
// round: 512 tokens of an 8B model in tiles of 128 take four rounds, of which the last has 26 of 66
// pairs, in tiles of 112 the last has 58.
constexpr GatedPlan plan_gated(int64_t num_tokens, int64_t intermediate_size,
                               int num_multiprocessors) {
  const auto cost = [&](const GatedPlan& plan) {
    return gated_rounds(plan, num_tokens, intermediate_size, num_multiprocessors).num_rounds *
           (plan.tile_features + 64);
  };
  return *std::ranges::min_element(kGatedPlans, {}, cost);
}

// With more tokens cuBLAS and the activation are as fast or faster (docs/experiments/
// gated-products.md): with 8,192 tokens of an 8B model 2,679 us on an H200, the gated product
// 2,807.
inline constexpr int64_t kGatedMaxTokens = 1024;

// Whether the gated product computes gate and up of so many tokens. Up to 64 have faster kernels,
// and so have products whose last round leaves over a sixth of all places for pairs empty: with
// 10,240 features and 192 tokens, 107 pairs in two rounds of 66 take 43.7 us on an H200, cuBLAS and
// the activation 39.2. Where the bits of a token's results must not depend on how many there are,
// all tokens need one kernel.
//   intermediate_size output features, for each of which the weights have a row of gate and of up
constexpr bool takes_gated(int64_t num_tokens, int64_t intermediate_size, const GpuTraits& gpu) {
  if (!gpu.runs_hopper() || gpu.is_batch_invariant() || num_tokens <= kSkinnyMaxTokens ||
      num_tokens > kGatedMaxTokens || intermediate_size % 8 != 0) {
    return false;
  }
  const GatedPlan plan = plan_gated(num_tokens, intermediate_size, gpu.num_multiprocessors);
  const auto [num_pairs, num_rounds] =
      gated_rounds(plan, num_tokens, intermediate_size, gpu.num_multiprocessors);
  return 6 * num_pairs >= 5 * num_rounds * (gpu.num_multiprocessors / 2);
}

}  // namespace tessera
