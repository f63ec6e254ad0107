// What the warps of the gated product share: sizes, shared memory, and the order of tiles.
//
//   tile   the results of kGatedTileTokens tokens and Config::kFeatures output features; of the
//          weights as many rows of gate and as many of up
//   pair   two tiles that two blocks compute at the same time, see PairShares
//   step   the next kPanelColumns = 64 input features of a tile
//   stage  a place in the ring in shared memory, for one step of a tile's tokens and weights
#pragma once

#include <cstdint>

#include "kernels/block_spec.h"
#include "kernels/cuda/linear/gated/plan.h"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

inline constexpr int kGatedPairBlocks = 2;
inline constexpr int kGatedWarpgroups = 2;  // that multiply, each 64 of the tile's tokens
inline constexpr int kGatedConsumerWarps = kGatedWarpgroups * kWarpgroupSize / 32;
// Of a thread. Those that multiply have up to 128 sums.
inline constexpr int kGatedProducerRegisters = 40;
inline constexpr int kGatedConsumerRegisters = 232;
static_assert(kGatedTileTokens == kGatedWarpgroups * kWarpgroupRows);

template <typename Element_, int kFeatures_>
struct GatedConfig {
  using Element = Element_;
  static constexpr int kFeatures = kFeatures_;
  static constexpr int kSums = kFeatures;  // of a thread: half of them of the gate, half of up
  static constexpr int kTokenElements = kGatedTileTokens * kPanelColumns;  // of a stage
  static constexpr int kPartElements = kFeatures * kPanelColumns;          // of gate, or of up
  static constexpr int kWeightBytes = 2 * kPartElements * static_cast<int>(sizeof(Element));
  static constexpr int kTokenBytes = kTokenElements * static_cast<int>(sizeof(Element));
  // As many as there is room for.
  static constexpr int kStages = 200 * 1024 / (kTokenBytes + kWeightBytes);
  // The copy engine's swizzle repeats after eight rows.
  static_assert(kFeatures % 8 == 0);
};

template <typename Config>
struct GatedStage {
  using Element = typename Config::Element;
  alignas(1024) Element tokens[Config::kTokenElements];
  alignas(1024) Element weights[2][Config::kPartElements];  // gate, up: rows that follow each other
};

template <typename Config>
struct GatedShared {
  GatedStage<Config> stages[Config::kStages];
  // Full: a stage's copies have arrived. Empty: all warps that multiply, of both blocks, are done
  // with it, since each block writes to both.
  uint64_t full[Config::kStages];
  uint64_t empty[Config::kStages];

  __device__ void init_barriers() {
    for (int stage = 0; stage < Config::kStages; ++stage) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], kGatedPairBlocks * kGatedConsumerWarps * warp_arrivals());
    }
    fence_barrier_init();
  }
};

struct GatedArguments {
  void* out;
  int64_t intermediate_size;
  int num_tokens;
  int num_steps;
  PairShares pair_shares;
  Activation activation;
  // Pairs of tiles, along the tokens and along the features.
  int token_pairs, feature_pairs;
};

// The first token and the first output feature of a block's tile.
struct GatedTile {
  int token;
  int feature;
};

// Blocks walk the pairs of tiles in an order in which those computed at the same time have few
// different tokens and features: the pairs of up to so many tokens, feature after feature, then
// those of the next tokens. The tokens stay in the L2 cache meanwhile, and each weight comes from
// it several times.
inline constexpr int kGatedTokensInTurn = 2048;

// The tokens of a tile that has fewer are copied in boxes of so many.
inline constexpr int kGatedSmallBox = 16;

// Calls body(tile) for each tile of the block.
template <typename Config, typename Body>
__device__ void for_each_gated_tile(const GatedArguments& arguments, Body&& body) {
  const int pair_blocks = static_cast<int>(blockIdx.x) / kGatedPairBlocks;
  const int rank = static_cast<int>(blockIdx.x) % kGatedPairBlocks;
  const bool shares_weights = arguments.pair_shares == PairShares::kWeights;
  const GatedPlan plan = {Config::kFeatures, arguments.pair_shares};
  const int pair_tokens = static_cast<int>(plan.pair_tokens());
  const int pair_features = static_cast<int>(plan.pair_features());
  const int in_turn = kGatedTokensInTurn / pair_tokens;
  const int num_pairs = arguments.token_pairs * arguments.feature_pairs;
  const int stride = static_cast<int>(gridDim.x) / kGatedPairBlocks;
  for (int pair = pair_blocks; pair < num_pairs; pair += stride) {
    const int turn = pair / (in_turn * arguments.feature_pairs);
    const int place = pair - turn * in_turn * arguments.feature_pairs;
    const int turn_pairs = min(in_turn, arguments.token_pairs - turn * in_turn);
    const int feature_pair = place / turn_pairs;
    const int token_pair = turn * in_turn + place - feature_pair * turn_pairs;
    body(GatedTile{
        .token = token_pair * pair_tokens + (shares_weights ? rank * kGatedTileTokens : 0),
        .feature = feature_pair * pair_features + (shares_weights ? 0 : rank * Config::kFeatures)});
  }
}

}  // namespace tessera
