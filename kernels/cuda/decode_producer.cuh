// What decode attention's producer warps do: find the block's pieces and fill the ring with their
// tiles, in one of two ways.
#pragma once

#include "kernels/cuda/bulk_copy.cuh"
#include "kernels/cuda/decode_items.cuh"
#include "kernels/cuda/decode_ring.cuh"
#include "kernels/cuda/dependent_launch.cuh"

namespace tessera {

// The row of `token` in its page.
__device__ inline int page_row(const AttentionArguments& arguments, int token) {
  return token -
         static_cast<int>(arguments.page_size.divide(token) * arguments.page_size.divisor());
}

// Arrives once the copies that this thread started with cp.async are done.
__device__ inline void mbarrier_arrive_after_copies(uint64_t* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}

// The pieces of a block and their pages, for its producers. One of them passes the pieces on.
class PieceSource {
 public:
  // Each lane looks up the page of the token lane_offset after a tile's first. The first piece is
  // found while the previous kernel may still be running.
  __device__ PieceSource(const AttentionArguments& arguments, int item_rows, DecodeSignals& signals,
                         int lane_offset, bool passes_on)
      : arguments_(arguments),
        signals_(signals),
        items_(arguments, item_rows),
        lane_offset_(lane_offset),
        passes_on_(passes_on) {}

  // The first piece, and the pages from its first tile on.
  __device__ bool first(DecodePiece& piece, int& page) {
    items_.divide_early();
    bool found = items_.next(piece);
    wait_for_previous_kernel();
    if (found) page = page_of(piece, piece.tile_begin);
    if (!items_.confirm()) {
      found = items_.next(piece);
      if (found) page = page_of(piece, piece.tile_begin);
    }
    return pass_on(found, piece);
  }

  __device__ bool next(DecodePiece& piece, int& page) {
    const bool found = items_.next(piece);
    if (found) page = page_of(piece, piece.tile_begin);
    return pass_on(found, piece);
  }

  // Past the context's end it is any entry of the table.
  __device__ int page_of(const DecodePiece& piece, int tile) const {
    if (arguments_.max_pages == 0) return 0;
    const int token = tile * kDecodeTileTokens + lane_offset_;
    const int index =
        min(static_cast<int>(arguments_.page_size.divide(token)), arguments_.max_pages - 1);
    return arguments_
        .block_tables[static_cast<int64_t>(piece.sequence) * arguments_.max_pages + index];
  }

 private:
  __device__ bool pass_on(bool found, DecodePiece& piece) {
    if (!found) piece.num_rows = 0;
    if (passes_on_) {
      const int slot = position_.stage;
      mbarrier_wait(&signals_.piece_empty[slot], position_.parity ^ 1);
      if (lane_index() == 0) {
        signals_.pieces[slot] = piece;
        mbarrier_arrive(&signals_.piece_full[slot]);
      }
      position_.advance(1, DecodeSignals::kPieces);
    }
    return found;
  }

  const AttentionArguments& arguments_;
  DecodeSignals& signals_;
  DecodeItems items_;
  RingPosition position_;
  int lane_offset_;
  bool passes_on_;
};

// One warp fills the ring with boxes of box_tokens rows: its lanes look up pages, the first of them
// starts copies. Boxes past the context's end are left out; whoever reads the tile must ignore
// their rows.
template <typename Element, int kHeadDim>
__device__ void fill_by_copy_engine(PieceSource source, const AttentionArguments& arguments,
                                    const DecodeRing<Element, kHeadDim>& ring,
                                    const CUtensorMap& keys_map, const CUtensorMap& values_map,
                                    int box_tokens) {
  const int box_elements = box_tokens * kHeadDim;
  const int tile_boxes = kDecodeTileTokens / box_tokens;
  RingPosition position;
  DecodePiece piece;
  int page = 0;  // lane l: that of the l-th box of 32
  for (bool found = source.first(piece, page); found; found = source.next(piece, page)) {
    int first_box = 0;  // of this tile, among those 32
    for (int tile = piece.tile_begin; tile < piece.tile_end; ++tile) {
      if (first_box == kWarpSize) {
        page = source.page_of(piece, tile);
        first_box = 0;
      }
      const int token = tile * kDecodeTileTokens;
      const int num_boxes =
          min(tile_boxes, (piece.context_length - token + box_tokens - 1) / box_tokens);
      const int stage = position.stage;
      DecodeSignals& signals = ring.signals;
      mbarrier_wait(&signals.empty[stage], position.parity ^ 1);
      if (lane_index() == 0) {
        const auto bytes = static_cast<uint32_t>(num_boxes * box_elements * sizeof(Element));
        mbarrier_expect_bytes(&signals.keys_full[stage], bytes);
        mbarrier_expect_bytes(&signals.values_full[stage], bytes);
      }
      for (int box = 0; box < num_boxes; ++box) {
        const int my_page = __shfl_sync(kFullWarp, page, first_box + box);
        const int row = page_row(arguments, token + box * box_tokens);
        if (lane_index() == 0) {
          copy_page_rows_async(ring.keys(stage) + box * box_elements, &keys_map,
                               &signals.keys_full[stage], row, piece.kv_head, my_page);
          copy_page_rows_async(ring.values(stage) + box * box_elements, &values_map,
                               &signals.values_full[stage], row, piece.kv_head, my_page);
        }
      }
      position.advance(1, ring.num_stages);
      first_box += tile_boxes;
    }
  }
}

// kDecodeTileTokens / kGroupTokens warps fill the ring with cp.async, each its own group of tokens
// of every tile. Rows past the context's end become zeros.
template <typename Element, int kHeadDim>
__device__ void fill_by_loads(PieceSource source, const AttentionArguments& arguments,
                              const DecodeRing<Element, kHeadDim>& ring, int warp) {
  using Rows = SwizzledRows<Element, kHeadDim>;
  const int first_row = warp * kGroupTokens;
  RingPosition position;
  DecodePiece piece;
  int pages = 0;  // lane l: that of the warp's group in the l-th tile of 32
  for (bool found = source.first(piece, pages); found; found = source.next(piece, pages)) {
    for (int tile = piece.tile_begin; tile < piece.tile_end; ++tile) {
      const int ahead = (tile - piece.tile_begin) % kWarpSize;
      if (ahead == 0 && tile > piece.tile_begin) pages = source.page_of(piece, tile);
      const int page = __shfl_sync(kFullWarp, pages, ahead);
      const int token = tile * kDecodeTileTokens + first_row;
      const int64_t page_head = static_cast<int64_t>(page) * arguments.num_kv_heads + piece.kv_head;
      const int64_t offset =
          (page_head * arguments.page_size.divisor() + page_row(arguments, token)) * kHeadDim;
      const int stage = position.stage;
      mbarrier_wait(&ring.signals.empty[stage], position.parity ^ 1);
      const auto copy = [&](Element* rows, const void* pool, uint64_t* full) {
        Rows{rows}.template copy_rows_async<kGroupTokens>(
            first_row, static_cast<const Element*>(pool) + offset, kHeadDim,
            piece.context_length - token);
        mbarrier_arrive_after_copies(full);
      };
      copy(ring.keys(stage), arguments.keys, &ring.signals.keys_full[stage]);
      copy(ring.values(stage), arguments.values, &ring.signals.values_full[stage]);
      position.advance(1, ring.num_stages);
    }
  }
}

}  // namespace tessera
