// The copying side of the skinny product: a thread for the weights and one for the tokens.
#pragma once

#include "kernels/cuda/linear/skinny/tiles.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"

namespace tessera {

// Walks the steps of all tiles of the block in the order in which the consumer multiplies them, and
// waits for a free ring stage before each. Then calls body(tile, step, stage, barrier), which is to
// start the copies into that stage; they complete at the barrier.
//
// When the block computes two tiles at once, the consumer multiplies step s of the first tile, then
// step s of the second tile, then step s + 1 of the first. Weights differ from tile to tile, so
// with kOfEachTile each of these gets a stage of its own. Tokens are the same for both tiles, so
// without kOfEachTile a step gets one stage, which serves both.
template <bool kOfEachTile, int kStages, typename Config, typename Body>
__device__ void for_each_free_stage(RingBarriers<kStages>& barriers, int num_stages,
                                    const SkinnyArguments& arguments,
                                    const SkinnyShare<Config>& share, Body&& body) {
  RingPosition position;
  for (int tile = share.first_tile; tile < arguments.num_tiles;
       tile += Config::kTilesAtOnce * share.stride) {
    const int num_stages_of_step = kOfEachTile ? share.num_at_once(arguments, tile) : 1;
    int step = share.first_step;
    for (int i = 0; i < share.num_steps; ++i) {
#pragma unroll 1
      for (int next = 0; next < num_stages_of_step; ++next) {
        mbarrier_wait(&barriers.empty[position.stage], position.parity ^ 1);
        body(tile + next * share.stride, share.begin_step + step, position.stage,
             &barriers.full[position.stage]);
        position.advance(1, num_stages);
      }
      step = step + 1 < share.num_steps ? step + 1 : 0;
    }
  }
}

// How many bytes of weights a block has under way at a time while it fills its ring for the first
// time. The first tokens, without which no product can begin, wait behind all weights that are
// under way to all blocks; with whole rings under way they would come several microseconds later
// (docs/experiments/skinny-products.md).
inline constexpr int kFirstWeightsUnderWay = 48 * 1024;

// Copies the weights of the block's tiles into the ring of weights, stage after stage. Called by
// one thread. kWholePanels is has_whole_panels(in_features). Weights without whole panels are rare,
// and the copies of their boxes stay a loop: when that loop was unrolled, the compiler arranged the
// registers of the multiplying warps anew.
template <typename Config, bool kWholePanels>
__device__ void copy_weights(SkinnyShared<Config>& shared, const CUtensorMap& map,
                             const SkinnyArguments& arguments, const SkinnyShare<Config>& share) {
  constexpr int kStageBytes = kStepPanels * Config::kRows * kPanelRowBytes;
  constexpr int kUnderWay = (kFirstWeightsUnderWay + kStageBytes - 1) / kStageBytes;
  const uint64_t policy = evict_first_policy();
  int num_started = 0;  // stages whose copies have begun, until the ring is full once
  for_each_free_stage<true>(
      shared.weight_barriers, Config::kWeightStages, arguments, share,
      [&](int tile, int step, int stage, uint64_t* full) {
        if (num_started < Config::kWeightStages) {
          if (stage >= kUnderWay) mbarrier_wait(&shared.weight_barriers.full[stage - kUnderWay], 0);
          ++num_started;
        }
        typename Config::Element* place = shared.weights[stage];
        mbarrier_expect_bytes(full, kStageBytes);
#pragma unroll
        for (int part = 0; part < Config::kParts; ++part) {
          const int row = tile * Config::kOutRows + part * static_cast<int>(arguments.out_features);
#pragma unroll(kWholePanels ? Config::kOutRows / kBoxRows : 1)
          for (int box = 0; box < Config::kOutRows; box += kBoxRows) {
            const int box_row = Config::kRotates ? arguments.rope.row(row + box) : row + box;
            if constexpr (kWholePanels) {
              copy_weight_box_async(place, &map, full, box_row, step * kStepPanels, policy);
            } else {
#pragma unroll
              for (int panel = 0; panel < kStepPanels; ++panel) {
                copy_matrix_box_async(place + panel * kBoxRows * kPanelColumns, &map, full,
                                      (step * kStepPanels + panel) * kPanelColumns, box_row,
                                      policy);
              }
            }
            place += kBoxBytes / sizeof(typename Config::Element);
          }
        }
      });
}

// Copies the tokens into the ring of tokens. Called by one thread. All steps of the tokens are
// copied again for every tile, or for every two tiles that are computed at once; after the first
// time they come from the L2 cache.
template <typename Config>
__device__ void copy_tokens(SkinnyShared<Config>& shared, const CUtensorMap& map,
                            const SkinnyArguments& arguments, const SkinnyShare<Config>& share) {
  const uint64_t policy = evict_normal_policy();
  const int panel_elements = arguments.token_panel_rows * kPanelColumns;
  for_each_free_stage<false>(
      shared.token_barriers, arguments.num_token_stages, arguments, share,
      [&](int /*tile*/, int step, int stage, uint64_t* full) {
        typename Config::Element* place = shared.tokens + stage * kStepPanels * panel_elements;
        mbarrier_expect_bytes(full, kStepPanels * arguments.num_tokens * kPanelRowBytes);
#pragma unroll
        for (int panel = 0; panel < kStepPanels; ++panel) {
          copy_matrix_box_async(place + panel * panel_elements, &map, full,
                                (step * kStepPanels + panel) * kPanelColumns, 0, policy);
        }
      });
}

}  // namespace tessera
