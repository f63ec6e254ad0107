// The shared memory of a block of the fused decode kernel, and the ring of one of its warps.
#pragma once

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/decode_items.cuh"
#include "kernels/cuda/fused_decode_arguments.h"
#include "kernels/cuda/mbarrier.cuh"
#include "kernels/cuda/ring_position.cuh"

namespace tessera {

inline constexpr int kFusedConsumers = kFusedWarps * kWarpSize;
// Besides the warps that compute, one fills their rings and one clears used words.
inline constexpr int kFusedThreads = kFusedConsumers + 2 * kWarpSize;

// Floats between two tokens' sums: four more than there are rows, so that the eight tokens of a
// tensor-core tile lie in different banks.
inline constexpr int kSumStride = kPassGroups * kUnitRows + 4;

template <int kTokens, int kHeadDim>
struct FusedSignals {
  uint64_t full[kFusedWarps][kMaxFusedStages];
  uint64_t empty[kFusedWarps][kMaxFusedStages];
  uint64_t planned;  // pieces and pages are there
  uint64_t left;     // the block has left the layer before, whose words may be cleared
  uint64_t cleared;  // and that is done
  int num_pieces;
  DecodePiece pieces[max_fused_pieces(kTokens)];
  // Where a piece's pages begin in `pages`; kMaxFusedPages: they are not there.
  int first_pages[max_fused_pieces(kTokens)];
  int pages[kMaxFusedPages];
  float2 rotations[kTokens][kHeadDim / 2];  // cos, sin
  int64_t page_rows[kTokens];               // of the new token: in KV head 0 of its page
  float sums[2][kFusedWarps][kTokens][kSumStride];
};

// A warp's ring of units, as the warp that computes sees it.
struct UnitRing {
  uint64_t* full;
  uint64_t* empty;
  uint32_t data;  // address
  int num_stages;
  RingPosition position;

  // Waits for the next unit and returns its address.
  __device__ uint32_t wait() const {
    mbarrier_wait(&full[position.stage], position.parity);
    __syncwarp();  // lanes may leave the wait one by one; tensor-core instructions want all
    return data + position.stage * kUnitBytes;
  }
  // All lanes are done with the unit.
  __device__ void release() {
    fence_before_copies();
    __syncwarp();
    if (reread_lane_index() == 0) mbarrier_arrive(&empty[position.stage]);
    position.advance(1, num_stages);
  }
};

// A barrier among the warps that compute.
__device__ inline void sync_fused_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kFusedConsumers) : "memory");
}

// Keys of a piece that fall to a warp: units first, first + kFusedWarps, ... below end, counted
// from the context's beginning.
struct PieceUnits {
  int first;
  int end;

  template <int kUnitTokens>
  __device__ static PieceUnits of(const DecodePiece& piece, int warp) {
    constexpr int kTileUnits = kDecodeTileTokens / kUnitTokens;
    const int context_units = (piece.context_length + kUnitTokens - 1) / kUnitTokens;
    return {.first = piece.tile_begin * kTileUnits + warp,
            .end = min(piece.tile_end * kTileUnits, context_units)};
  }
};

// The rotation of a layer's products, from that of the layer before.
__device__ inline int next_rotation(const FusedDecodeArguments& arguments, int rotation) {
  const int next = rotation + arguments.layer_rotation;
  const auto num_blocks = static_cast<int>(gridDim.x);
  return next < num_blocks ? next : next - num_blocks;
}

// The page of a sequence, counted from its first, in which a piece begins.
__device__ inline int first_page(const AttentionArguments& attention, const DecodePiece& piece) {
  return static_cast<int>(attention.page_size.divide(piece.tile_begin * kDecodeTileTokens));
}

}  // namespace tessera
