// The copying side of the skinny product: a thread for the weights and one for the tokens.
#pragma once

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/dependent_launch.cuh"
#include "kernels/cuda/linear_skinny_tiles.cuh"
#include "kernels/cuda/ring_position.cuh"

namespace tessera {

// The map's box from this corner of a matrix; see make_matrix_tensor_map().
__device__ inline void copy_matrix_box_async(void* shared, const CUtensorMap* map,
                                             uint64_t* barrier, int column, int row,
                                             uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared_address(shared)),
      "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "l"(policy)
      : "memory");
}

// Copies the block's steps of all its tiles, boxes of `box_rows` of the kRows rows that a panel has
// room for. first_row(tile) is the box's row in the matrix.
template <typename Config, int kRows, int kStages, typename FirstRow>
__device__ void copy_steps(typename Config::Element* ring, RingBarriers<kStages>& barriers,
                           const CUtensorMap& map, int box_rows, const SkinnyArguments& arguments,
                           const SkinnyShare<Config>& share, uint64_t policy, FirstRow first_row) {
  constexpr int kPanelElements = kRows * kPanelColumns;
  RingPosition position;
  for (int tile = share.first_tile; tile < arguments.num_tiles; tile += share.stride) {
    for (int step = share.begin_step; step < share.end_step; ++step) {
      uint64_t* const full = &barriers.full[position.stage];
      mbarrier_wait(&barriers.empty[position.stage], position.parity ^ 1);
      mbarrier_expect_bytes(full, Config::kPanels * box_rows * kPanelRowBytes);
#pragma unroll
      for (int panel = 0; panel < Config::kPanels; ++panel) {
        copy_matrix_box_async(ring + (position.stage * Config::kPanels + panel) * kPanelElements,
                              &map, full, (step * Config::kPanels + panel) * kPanelColumns,
                              first_row(tile), policy);
      }
      position.advance(1, kStages);
    }
  }
}

template <typename Config>
__device__ void copy_weights(SkinnyShared<Config>& shared, const CUtensorMap& map,
                             const SkinnyArguments& arguments, const SkinnyShare<Config>& share) {
  copy_steps<Config, Config::kRows>(shared.weights[0], shared.weight_barriers, map, Config::kRows,
                                    arguments, share, evict_first_policy(),
                                    [](int tile) { return tile * Config::kRows; });
}

// Once more for every tile: they stay in L2.
template <typename Config>
__device__ void copy_tokens(SkinnyShared<Config>& shared, const CUtensorMap& map,
                            const SkinnyArguments& arguments, const SkinnyShare<Config>& share) {
  copy_steps<Config, kSkinnyTokens>(shared.tokens[0], shared.token_barriers, map,
                                    arguments.num_tokens, arguments, share, evict_normal_policy(),
                                    [](int) { return 0; });
}

}  // namespace tessera
