// The copying side of the gated product: the work of one thread. tiles.cuh has the terms.
#pragma once

#include "kernels/cuda/linear/gated/tiles.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"

namespace tessera {

struct GatedMaps {
  CUtensorMap x;        // boxes of all the tokens that a block brings for a tile
  CUtensorMap x_small;  // boxes of kGatedSmallBox tokens
  CUtensorMap weight;   // boxes of a tile's features
};

template <typename Config>
class GatedProducer {
 public:
  __device__ GatedProducer(GatedShared<Config>& shared, const GatedMaps& maps,
                           const GatedArguments& arguments)
      : shared_(shared),
        maps_(maps),
        arguments_(arguments),
        rank_(static_cast<int>(blockIdx.x) % kGatedPairBlocks),
        shares_weights_(arguments.pair_shares == PairShares::kWeights) {}

  // Copies all steps of all tiles of the block. Nobody writes weights while a model runs, so those
  // of the first stages need not wait for the kernel before.
  __device__ void run() {
    const int num_early = min(Config::kStages, arguments_.num_steps);
    bool is_first = true;
    RingPosition position;
    for_each_gated_tile<Config>(arguments_, [&](const GatedTile& tile) {
      const Tokens tokens(*this, tile);
      if (is_first) {
        for (int step = 0; step < num_early; ++step) begin_stage(tile, tokens, step, step);
        wait_for_previous_results();
      }
      for (int step = 0; step < arguments_.num_steps; ++step) {
        if (!is_first || step >= num_early) {
          mbarrier_wait(&shared_.empty[position.stage], position.parity ^ 1);
          begin_stage(tile, tokens, step, position.stage);
        }
        copy_tokens(tokens, step, position.stage);
        position.advance(1, Config::kStages);
      }
      is_first = false;
    });
    launch_next_kernel();
  }

 private:
  using Element = typename Config::Element;

  // Of a tile's tokens, those that this block brings, counted from the tile's first: all, or where
  // the pair shares them, one half, to both blocks. Boxes end with the last token, or a few rows
  // after it, which the copy engine writes as zeros: that takes it longer than to fetch them.
  struct Tokens {
    int first_token;  // of the tile
    int tile_bytes;   // that both blocks bring in a step
    int begin;
    int num_rows;
    bool is_whole;  // one large box

    __device__ Tokens(const GatedProducer& producer, const GatedTile& tile)
        : first_token(tile.token) {
      const int rest = producer.arguments_.num_tokens - tile.token;
      const auto rows_of = [&](int from, int count) {
        const int num_boxes = (rest - from + kGatedSmallBox - 1) / kGatedSmallBox;
        return min(max(num_boxes, 0) * kGatedSmallBox, count);
      };
      const int brought = producer.shares_weights_ ? kGatedTileTokens : kGatedTileTokens / 2;
      tile_bytes = rows_of(0, kGatedTileTokens) * kPanelRowBytes;
      begin = producer.shares_weights_ ? 0 : producer.rank_ * brought;
      num_rows = rows_of(begin, brought);
      is_whole = num_rows == brought;
    }
  };

  // Announces a stage's bytes and copies its weights.
  __device__ void begin_stage(const GatedTile& tile, const Tokens& tokens, int step, int stage) {
    uint64_t* const full = &shared_.full[stage];
    Element(&weights)[2][Config::kPartElements] = shared_.stages[stage].weights;
    const auto up = static_cast<int>(arguments_.intermediate_size);
    const int column = step * kPanelColumns;
    mbarrier_expect_bytes(full, tokens.tile_bytes + Config::kWeightBytes);
    if (shares_weights_) {  // the first block brings the gate, the second up
      copy_matrix_box_to_pair_async(weights[rank_], &maps_.weight, full, column,
                                    tile.feature + rank_ * up);
      return;
    }
    const uint64_t policy = evict_first_policy();
    copy_matrix_box_async(weights[0], &maps_.weight, full, column, tile.feature, policy);
    copy_matrix_box_async(weights[1], &maps_.weight, full, column, tile.feature + up, policy);
  }

  __device__ void copy_tokens(const Tokens& tokens, int step, int stage) {
    if (tokens.is_whole) return copy_token_box(maps_.x, tokens, tokens.begin, step, stage);
    for (int i = 0; i < tokens.num_rows; i += kGatedSmallBox) {
      copy_token_box(maps_.x_small, tokens, tokens.begin + i, step, stage);
    }
  }
  // The box's first token is counted from the tile's.
  __device__ void copy_token_box(const CUtensorMap& map, const Tokens& tokens, int row, int step,
                                 int stage) {
    Element* const place = shared_.stages[stage].tokens + row * kPanelColumns;
    uint64_t* const full = &shared_.full[stage];
    const int column = step * kPanelColumns;
    if (shares_weights_) {
      copy_matrix_box_async(place, &map, full, column, tokens.first_token + row,
                            evict_normal_policy());
    } else {
      copy_matrix_box_to_pair_async(place, &map, full, column, tokens.first_token + row);
    }
  }

  GatedShared<Config>& shared_;
  const GatedMaps& maps_;
  const GatedArguments& arguments_;
  const int rank_;
  const bool shares_weights_;
};

}  // namespace tessera
