// The ring of key and value tiles in shared memory between decode attention's producer warps, which
// fill it, and its consumer warps, which compute.
#pragma once

#include <type_traits>

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/plan.h"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/panels.h"
#include "kernels/cuda/primitives/ring_position.cuh"
#include "kernels/cuda/primitives/swizzled_rows.cuh"

namespace tessera {

// Where a lane finds the 16-byte chunks of one row of a tile in shared memory. Both layouts permute
// a row's chunks by XOR, so that the address of a chunk takes two instructions: a block that has
// just one tile to compute shows the time of every instruction.
struct RowChunks {
  uint32_t row;      // address of the row's first chunk
  uint32_t swizzle;  // 16 * (what chunk numbers are XORed with)
  uint32_t panel;    // bytes from a panel's chunks to those of the next panel

  // Chunk `even_chunk` + the `odd` that this was made with.
  template <int kPanelChunks>
  __device__ uint32_t address(int even_chunk) const {
    return row + even_chunk / kPanelChunks * panel + (even_chunk % kPanelChunks * 16 ^ swizzle);
  }
};

// How many rows the boxes have that bring a tile with num_tokens tokens of the context: the
// smallest boxes are used if these read less.
__device__ inline int tile_box_tokens(int num_tokens, int box_tokens) {
  return num_tokens <= kDecodeTileTokens - kCopyTokens ? kCopyTokens : box_tokens;
}

// A tile as the copy engine leaves it: boxes of box_tokens rows, each in panels.
template <typename Element, int kHeadDim>
struct BoxRows {
  static constexpr int kPanelRowBytes = panel_row_bytes(kHeadDim * 2);
  static constexpr int kPanelChunks = kPanelRowBytes / 16;
  uint32_t tile;  // address
  int box_tokens;

  // `first_row` is a multiple of kCopyTokens, and so are boxes: none ends among the kCopyTokens
  // rows that follow. odd: 0 or 1.
  __device__ RowChunks chunks(int first_row, int row, int odd) const {
    const int box_row = first_row & (box_tokens - 1);
    return {.row = tile + static_cast<uint32_t>((first_row - box_row) * kHeadDim * 2 +
                                                (box_row + row) * kPanelRowBytes),
            .swizzle = (panel_swizzle<kPanelRowBytes>(row) ^ odd) * 16,
            .panel = static_cast<uint32_t>(box_tokens * kPanelRowBytes)};
  }
};

// A tile as the loading warps leave it.
template <typename Element, int kHeadDim>
struct LoadedRows {
  using Rows = SwizzledRows<Element, kHeadDim>;
  static constexpr int kPanelChunks = Rows::kChunks;
  uint32_t tile;   // address
  int box_tokens;  // not used

  __device__ RowChunks chunks(int first_row, int row, int odd) const {
    const int tile_row = first_row + row;
    return {.row = tile + static_cast<uint32_t>(tile_row * kHeadDim * 2),
            .swizzle = static_cast<uint32_t>((Rows::swizzle(tile_row) ^ odd) * 16),
            .panel = 0};
  }
};

template <typename Element, int kHeadDim, bool kCopyEngine>
using DecodeRows =
    std::conditional_t<kCopyEngine, BoxRows<Element, kHeadDim>, LoadedRows<Element, kHeadDim>>;

// What producers and consumers tell each other. The keys and the values of a stage become full one
// after the other, so that scores are computed while values are still on their way. The first
// producer warp also tells the consumers the block's pieces: consumers have no registers to spare
// for finding them.
struct DecodeSignals {
  static constexpr int kPieces = 8;

  uint64_t keys_full[kMaxDecodeStages];
  uint64_t values_full[kMaxDecodeStages];
  uint64_t empty[kMaxDecodeStages];
  uint64_t piece_full[kPieces];
  uint64_t piece_empty[kPieces];
  DecodePiece pieces[kPieces];  // one of 0 rows is the end
  uint64_t guess_checked;
  bool guess_is_wrong;

  // Called by the first lanes of consumer_warps warps, because the first copies wait for this and
  // every barrier takes some 70 cycles. num_stages: of the ring; fills: arrivals that make a tile
  // full; readers: warps that read each tile.
  __device__ void init(int warp, int num_stages, int fills, int readers, int consumer_warps) {
    for (int slot = warp; slot < kPieces; slot += consumer_warps) {
      mbarrier_init(&piece_full[slot], 1);
      mbarrier_init(&piece_empty[slot], consumer_warps * warp_arrivals());
    }
    for (int stage = warp; stage < num_stages; stage += consumer_warps) {
      mbarrier_init(&keys_full[stage], fills);
      mbarrier_init(&values_full[stage], fills);
      mbarrier_init(&empty[stage], readers * warp_arrivals());
    }
    if (warp == 0) mbarrier_init(&guess_checked, 1);
  }

  // One lane of the warp that passes pieces on says, once, whether its guess was right.
  __device__ void judge_guess(bool is_right) {
    guess_is_wrong = !is_right;
    mbarrier_arrive(&guess_checked);
  }
  __device__ bool is_wrong_guess(const DecodePiece& piece) {
    if (!piece.is_guess) return false;
    mbarrier_wait(&guess_checked, 0);
    return guess_is_wrong;
  }
};

template <typename Element, int kHeadDim>
struct DecodeRing {
  static constexpr int kTileElements = kDecodeTileTokens * kHeadDim;

  Element* data;  // [num_stages][keys, values][kTileElements]
  DecodeSignals& signals;
  int num_stages;

  __device__ Element* keys(int stage) const { return data + 2 * stage * kTileElements; }
  __device__ Element* values(int stage) const { return keys(stage) + kTileElements; }
  __device__ void* end() const { return keys(num_stages); }
};

}  // namespace tessera
