// What decode attention's producer warps do: find the block's pieces and fill the ring with their
// tiles, in one of two ways.
#pragma once

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"

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

// The block's first piece by the lengths as they are before the previous kernel has ended, and the
// page that each lane has looked up for it.
struct DecodeGuess {
  DecodePiece piece;
  int page;
  bool is_there;
};

// The pieces of a block and their pages, for its producers. One of them passes the pieces on.
template <DecodePart kPart>
class PieceSource {
 public:
  // Each lane looks up the page of the token lane_offset after a tile's first. The first piece is
  // found while the previous kernel may still be running.
  __device__ PieceSource(const AttentionArguments& arguments, const DecodeDivision& division,
                         bool keeps_whole, DecodeSignals& signals, int lane_offset, bool passes_on,
                         const int32_t* own_begins)
      : arguments_(arguments),
        signals_(signals),
        items_(arguments, division, keeps_whole, own_begins),
        lane_offset_(lane_offset),
        passes_on_(passes_on) {}

  // Does not pass the piece on to the consumers yet, so it needs no barriers.
  __device__ DecodeGuess guess() {
    DecodeGuess guess{};
    items_.divide_early();
    guess.is_there = items_.next(guess.piece) && is_possible(guess.piece);
    guess.piece.is_guess = guess.is_there;
    if (guess.is_there) guess.page = page_of(guess.piece, guess.piece.tile_begin);
    return guess;
  }

  // Called after guess() has found a piece and the previous kernel has ended. Checks whether the
  // lengths and the pages were final, the pages in lanes below num_lanes, and reads all pages
  // again. If they were not, the consumers learn that the guessed piece is void; they still wait
  // for all its tiles, whatever these hold, and next() will give the first piece.
  __device__ void confirm(const DecodePiece& piece, int& page, int num_lanes) {
    const int final_page = page_of(piece, piece.tile_begin);
    const bool same_lengths = items_.confirm();
    const bool same_page = lane_index() >= num_lanes || page == final_page;
    const bool is_right = __all_sync(kFullWarp, same_lengths && same_page);
    if (lane_index() == 0) signals_.judge_guess(is_right);
    if (!is_right) items_.divide();
    page = final_page;
  }

  // The first piece, by the lengths as they are.
  __device__ bool first(DecodePiece& piece, int& page) {
    items_.divide();
    return next(piece, page);
  }

  // The same after guess() has found none and the previous kernel has ended.
  __device__ bool first_again(DecodePiece& piece, int& page) {
    items_.confirm();
    return first(piece, page);
  }

  __device__ bool next(DecodePiece& piece, int& page) {
    const bool found = items_.next(piece);
    if (found) page = page_of(piece, piece.tile_begin);
    piece.is_guess = false;
    if (!found) piece.num_rows = 0;
    pass_on(piece);
    return found;
  }

  // Gives a piece, or the end, to the consumers.
  __device__ void pass_on(const DecodePiece& piece) {
    if (!passes_on_) return;
    const int slot = position_.stage;
    mbarrier_wait(&signals_.piece_empty[slot], position_.parity ^ 1);
    if (lane_index() == 0) {
      signals_.pieces[slot] = piece;
      mbarrier_arrive(&signals_.piece_full[slot]);
    }
    position_.advance(1, DecodeSignals::kPieces);
  }

  // The page that the lane looks up for a tile; past the context's end it is any entry of the
  // table.
  __device__ int page_of(const DecodePiece& piece, int tile) const {
    if (arguments_.max_pages == 0) return 0;
    const int token = tile * kDecodeTileTokens + lane_offset_;
    const int index =
        min(static_cast<int>(arguments_.page_size.divide(token)), arguments_.max_pages - 1);
    // Not from the L1 cache, where a guess would hide a later change.
    return __ldcg(arguments_.block_tables +
                  static_cast<int64_t>(piece.sequence) * arguments_.max_pages + index);
  }

 private:
  // Whether consumers can act on a guess: its queries must exist, and its context must end within
  // the block table.
  __device__ bool is_possible(const DecodePiece& piece) const {
    const int max_tokens = arguments_.max_pages * static_cast<int>(arguments_.page_size.divisor());
    return piece.context_length <= max_tokens && piece.first_token >= 0 &&
           piece.first_token <= arguments_.num_tokens - piece.query_length;
  }

  const AttentionArguments& arguments_;
  DecodeSignals& signals_;
  DecodeItems<2, true, kPart> items_;
  RingPosition position_;
  int lane_offset_;
  bool passes_on_;
};

// How many tiles may be under way at a time in the first, third, fifth ... round of the ring. In
// the first round consumers may still wait for their queries, which arrive behind all that is under
// way to all blocks: 5 us later behind whole rings on an H200. The other rounds need no limit and
// are not hurt by one of 64 KiB: with a limit in the first round alone, 1 x 32k takes 34.2 instead
// of 33.9 us, 64 x 1k 64.0 instead of 64.2 (heads of 128). A limit of 32 KiB does hurt: heads of
// 64, 64 x 1,088, 39.6 instead of 36.7 us. A third of the ring is 64 KiB in both cases: four of
// twelve tiles of 16 KiB, two of six of 32 KiB. Heads of 128 in float8_e4m3, which have a ring of
// eight tiles of 16 KiB, stay at 32 KiB: with 64 KiB and twelve tiles they took 1.5 % longer.
__device__ inline int tiles_under_way(int num_stages) { return max(2, num_stages / 3); }

// Pages for the copy engine, in boxes of several sizes.
struct DecodePageMaps {
  CUtensorMap keys;  // boxes of box_tokens rows
  CUtensorMap values;
  CUtensorMap last_keys;  // boxes of kCopyTokens rows
  CUtensorMap last_values;
};

// One warp fills the ring with boxes: its lanes look up pages, the first of them starts copies.
// Boxes past the context's end are left out; whoever reads the tile must ignore their rows.
template <typename Element, int kHeadDim, DecodePart kPart>
__device__ void fill_by_copy_engine(PieceSource<kPart> source, const DecodeGuess& guess,
                                    const AttentionArguments& arguments,
                                    const DecodeRing<Element, kHeadDim>& ring,
                                    const DecodePageMaps& maps, int box_tokens) {
  const int tile_boxes = kDecodeTileTokens / box_tokens;
  const int lookup_tiles = kWarpSize / tile_boxes;  // whose pages the lanes hold; a power of two
  const int box_shift = 31 - __clz(box_tokens);
  const int under_way = tiles_under_way(ring.num_stages);
  const uint64_t policy = evict_first_policy();
  RingPosition position;
  DecodePiece piece = guess.piece;
  int page = guess.page;  // lane l: the page of box l of 32
  const auto start_tiles = [&](int tile_begin, int tile_end) {
    for (int tile = tile_begin; tile < tile_end; ++tile) {
      const int first_box = ((tile - piece.tile_begin) & (lookup_tiles - 1)) * tile_boxes;
      if (first_box == 0 && tile > piece.tile_begin) page = source.page_of(piece, tile);
      const int token = tile * kDecodeTileTokens;
      const int num_tokens = min(kDecodeTileTokens, piece.context_length - token);
      const int rows = tile_box_tokens(num_tokens, box_tokens);
      const int num_rows = (num_tokens + rows - 1) & -rows;
      const bool is_last = rows < box_tokens;
      const CUtensorMap& keys_map = is_last ? maps.last_keys : maps.keys;
      const CUtensorMap& values_map = is_last ? maps.last_values : maps.values;
      const int stage = position.stage;
      DecodeSignals& signals = ring.signals;
      mbarrier_wait(&signals.empty[stage], position.parity ^ 1);
      if (position.parity == 0 && stage >= under_way) {
        mbarrier_wait(&signals.values_full[stage - under_way], 0);
      }
      if (lane_index() == 0) {
        const auto bytes = static_cast<uint32_t>(num_rows * kHeadDim * sizeof(Element));
        mbarrier_expect_bytes(&signals.keys_full[stage], bytes);
        mbarrier_expect_bytes(&signals.values_full[stage], bytes);
      }
      for (int first_row = 0; first_row < num_rows; first_row += rows) {
        const int my_page = __shfl_sync(kFullWarp, page, first_box + (first_row >> box_shift));
        const int row = page_row(arguments, token + first_row);
        if (lane_index() == 0) {
          copy_page_rows_async(ring.keys(stage) + first_row * kHeadDim, &keys_map,
                               &signals.keys_full[stage], row, piece.kv_head, my_page, policy);
          copy_page_rows_async(ring.values(stage) + first_row * kHeadDim, &values_map,
                               &signals.values_full[stage], row, piece.kv_head, my_page, policy);
        }
      }
      position.advance(1, ring.num_stages);
    }
  };

  bool found = guess.is_there;
  int tile = piece.tile_begin;
  if (found) {
    // While the previous kernel ends, copy the tiles in which the kernels of this step write
    // nothing: those without the step's own tokens.
    const int end = min(piece.tile_end, tile + min(ring.num_stages, lookup_tiles));
    const int new_tokens = kPart == DecodePart::kShared ? 0 : piece.query_length;
    const int old_tiles = (piece.context_length - new_tokens) / kDecodeTileTokens;
    tile = max(tile, min(end, old_tiles));
    source.pass_on(piece);  // consumers fetch its queries as soon as these are there
    start_tiles(piece.tile_begin, tile);
    pass_on_previous_results();
    start_tiles(tile, end);
    source.confirm(piece, page, (end - piece.tile_begin) * tile_boxes);
    tile = end;
  } else {
    pass_on_previous_results();
    found = source.first_again(piece, page);
    tile = piece.tile_begin;
  }
  while (found) {
    start_tiles(tile, piece.tile_end);
    found = source.next(piece, page);
    tile = piece.tile_begin;
  }
}

// kDecodeTileTokens / kCopyTokens warps fill the ring with cp.async, each its own group of tokens
// of every tile. Rows past the context's end become zeros.
template <typename Element, int kHeadDim, DecodePart kPart>
__device__ void fill_by_loads(PieceSource<kPart> source, const AttentionArguments& arguments,
                              const DecodeRing<Element, kHeadDim>& ring, int warp) {
  using Rows = SwizzledRows<Element, kHeadDim>;
  const int first_row = warp * kCopyTokens;
  RingPosition position;
  DecodePiece piece;
  int pages = 0;  // lane l: the page of the warp's group in tile l of 32
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
        Rows{rows}.template copy_rows_async<kCopyTokens>(first_row,
                                                         static_cast<const Element*>(pool) + offset,
                                                         kHeadDim, piece.context_length - token);
        mbarrier_arrive_after_copies(full);
      };
      copy(ring.keys(stage), arguments.keys, &ring.signals.keys_full[stage]);
      copy(ring.values(stage), arguments.values, &ring.signals.values_full[stage]);
      position.advance(1, ring.num_stages);
    }
  }
}

}  // namespace tessera
