// The items of decode attention that fall to a thread block, computed from the lengths in device
// memory at the start of the kernel.
#pragma once

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/attention/decode/partition.h"
#include "kernels/cuda/attention/decode/shared_prefix.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/fast_divisor.h"

namespace tessera {

// The part of an item that one block reads.
struct DecodePiece {
  int sequence;
  int first_token;     // of the sequence in the step's token dimension
  int query_length;    // tokens
  int context_length;  // tokens
  int kv_head;
  int first_row;  // of the KV head's query rows; with g heads per KV head, row r is query r / g,
                  // head r % g
  int num_rows;
  int tile_begin;  // tiles of the context; none when no row sees a key
  int tile_end;
  int index;  // among the item's pieces
  PieceOwners owners;
  bool is_guess;  // made from lengths that an earlier kernel could still change
};

// Which row of the step's queries, and of its outputs, is row `row` of the piece's KV head.
__device__ inline int64_t step_row(const AttentionArguments& arguments, const DecodePiece& piece,
                                   int row) {
  const int index = row / arguments.heads_per_kv_head;  // of the query in its sequence
  const int head =
      piece.kv_head * arguments.heads_per_kv_head + row - index * arguments.heads_per_kv_head;
  return static_cast<int64_t>(piece.first_token + index) * arguments.num_heads + head;
}

// What the host decides about the division.
struct DecodeDivision {
  int item_rows;            // most query rows of an item
  bool is_even;             // one sequence, and several blocks for each of its KV heads
  FastDivisor item_blocks;  // if is_even: blocks of each KV head
  int max_whole_tiles;      // if is_even: an item of up to so many tiles is not split
  int least_tiles;          // if is_even: fewest tiles of a piece of a longer item
};

// What a lane knows of a sequence. A query_length of 0 means that there is none.
template <DecodePart kPart>
struct DecodeLengths {
  int first_token;
  int query_length;
  int context_length;

  __device__ bool operator==(const DecodeLengths& other) const {
    return first_token == other.first_token && query_length == other.query_length &&
           context_length == other.context_length;
  }
  __device__ static int own_begin() { return 0; }
};

template <>
struct DecodeLengths<DecodePart::kOwn> : DecodeLengths<DecodePart::kWhole> {
  int begin;  // the first token of the sequence's own part, where reading begins

  __device__ bool operator==(const DecodeLengths& other) const {
    return DecodeLengths<DecodePart::kWhole>::operator==(other) && begin == other.begin;
  }
  __device__ int own_begin() const { return begin; }
};

// Where the sequences' own parts begin. Only kOwn has the pointer: the machine code of most other
// kernels would change for an unused one (docs/experiments/batches.md).
template <DecodePart kPart>
struct OwnBegins {
  __device__ explicit OwnBegins(const int32_t* /*begins*/) {}
};
template <>
struct OwnBegins<DecodePart::kOwn> {
  const int32_t* begins;  // [num_decodes]
  __device__ explicit OwnBegins(const int32_t* begins) : begins(begins) {}
};

// Walks the pieces of this block in order. Every producer warp makes the walk on its own, all lanes
// together. Lane l takes sequences 32 k + l and keeps the lengths of its first kKnown ones, so that
// the lengths of a usual batch are read once. Without kMayKeepWhole, items are divided even if
// keeps_whole is given. With DecodePart::kShared, the arguments' sequences are groups of decodes.
template <int kKnown, bool kMayKeepWhole = true, DecodePart kPart = DecodePart::kWhole>
class DecodeItems : OwnBegins<kPart> {
 public:
  // Starts reading the lengths. own_begins: only for DecodePart::kOwn, see OwnBegins.
  __device__ DecodeItems(const AttentionArguments& arguments, const DecodeDivision& division,
                         bool keeps_whole = false, const int32_t* own_begins = nullptr)
      : OwnBegins<kPart>(own_begins),
        arguments_(arguments),
        division_(division),
        keeps_whole_(keeps_whole) {
    load_known();
    load(0);
  }

  // Divides the work by lengths that an earlier kernel may still change, so that the arithmetic
  // overlaps that kernel's end. What next() then gives are guesses. Does nothing if there are more
  // sequences than lanes keep: their lengths would be read twice and might change in between.
  __device__ void divide_early() {
    if (arguments_.num_decodes <= kKnownSequences) divide();
  }

  // Reads the lengths again. True if those read before were final.
  __device__ bool confirm() {
    Lengths before[kKnown];
#pragma unroll
    for (int k = 0; k < kKnown; ++k) before[k] = known_[k];
    load_known();
    load(base_);
    bool same = true;
#pragma unroll
    for (int k = 0; k < kKnown; ++k) same = same && before[k] == known_[k];
    return arguments_.num_decodes <= kKnownSequences && __all_sync(kFullWarp, same);
  }

  // Divides the work by the lengths read last; next() begins with the first piece.
  __device__ void divide() {
    item_begin_ = end_ = lane_ = 0;
    if (base_ != 0) load(0);
    has_only_ = division_.is_even &&
                from_lane(own_.query_length) * arguments_.heads_per_kv_head <= division_.item_rows;
    if (!has_only_) divide_unevenly();
  }

  // False when there is no further piece.
  __device__ bool next(DecodePiece& piece) {
    if (has_only_) {
      has_only_ = false;
      return only(piece);
    }
    while (item_begin_ < end_) {
      piece.query_length = from_lane(own_.query_length);
      piece.context_length = from_lane(own_.context_length);
      const DecodeSequence sequence =
          items_of(piece.query_length, piece.context_length, own_begin_from_lane());
      if (item_ == sequence.num_items) {
        item_ = 0;
        if (++lane_ == kWarpSize) {
          lane_ = 0;
          load(base_ + kWarpSize);
        }
        if (base_ + lane_ >= arguments_.num_decodes) end_ = item_begin_;
        continue;
      }
      const int num_tiles = sequence.num_tiles;
      const int item_begin = item_begin_;
      const int item = item_++;
      item_begin_ += share_.payload(num_tiles);
      const int block = static_cast<int>(blockIdx.x);
      const DecodeTiles tiles = decode_tiles(share_, item_begin, num_tiles, block);
      // An item without tiles belongs to the block in whose share it begins.
      if (tiles.begin == tiles.end && (num_tiles > 0 || item_begin < begin_)) continue;

      piece.sequence = base_ + lane_;
      piece.first_token = from_lane(own_.first_token);
      // A group has the block table of its first decode. Each decode has one token, so the decode's
      // number is that of its token.
      if constexpr (kPart == DecodePart::kShared) piece.sequence = piece.first_token;
      piece.kv_head = sequence.row_blocks == 1 ? item : item / sequence.row_blocks;
      piece.first_row = (item - piece.kv_head * sequence.row_blocks) * division_.item_rows;
      piece.num_rows = min(division_.item_rows,
                           piece.query_length * arguments_.heads_per_kv_head - piece.first_row);
      piece.tile_begin = sequence.first_tile + tiles.begin;
      piece.tile_end = sequence.first_tile + tiles.end;
      piece.owners =
          num_tiles > 0 ? piece_owners(share_, item_begin, num_tiles) : PieceOwners{block, 1};
      piece.index = block - piece.owners.first_block;
      return true;
    }
    return false;
  }

 private:
  using Lengths = DecodeLengths<kPart>;
  static constexpr int kKnownSequences = kKnown * kWarpSize;

  __device__ Lengths read(int base) const {
    const int sequence = base + lane_index();
    Lengths lengths{};
    if (sequence < arguments_.num_decodes) {
      // Not from the L1 cache, where an early read would hide a later change.
      lengths.first_token = __ldcg(arguments_.query_starts + sequence);
      lengths.query_length = __ldcg(arguments_.query_starts + sequence + 1) - lengths.first_token;
      lengths.context_length = __ldcg(arguments_.context_lengths + sequence);
      if constexpr (kPart == DecodePart::kOwn) lengths.begin = __ldcg(this->begins + sequence);
    }
    return lengths;
  }

  __device__ void load_known() {
#pragma unroll
    for (int k = 0; k < kKnown; ++k) known_[k] = read(k * kWarpSize);
  }

  // Turns to sequences [base, base + 32); lanes beyond the last sequence have no items.
  __device__ void load(int base) {
    base_ = base;
#pragma unroll
    for (int k = 0; k < kKnown; ++k) {
      if (base == k * kWarpSize) own_ = known_[k];
    }
    if (base >= kKnownSequences) own_ = read(base);
  }

  __device__ bool keeps_whole() const { return kMayKeepWhole && keeps_whole_; }

  __device__ DecodeSequence items_of(int query_length, int context_length, int own_begin) const {
    return decode_sequence({.heads_per_kv_head = arguments_.heads_per_kv_head,
                            .num_kv_heads = arguments_.num_kv_heads,
                            .item_rows = division_.item_rows,
                            .window = arguments_.window,
                            .keeps_whole = keeps_whole()},
                           query_length, context_length, kPart == DecodePart::kOwn ? own_begin : 0);
  }
  __device__ DecodeSequence own_items() const {
    return items_of(own_.query_length, own_.context_length, own_.own_begin());
  }

  // The block's piece when the division is even.
  __device__ bool only(DecodePiece& piece) const {
    const FastDivisor& item_blocks = division_.item_blocks;
    const int block = static_cast<int>(blockIdx.x);
    const int num_blocks = static_cast<int>(item_blocks.divisor());
    piece.sequence = 0;
    piece.first_token = from_lane(own_.first_token);
    piece.query_length = from_lane(own_.query_length);
    piece.context_length = from_lane(own_.context_length);
    piece.kv_head = static_cast<int>(item_blocks.divide(block));
    piece.first_row = 0;
    piece.num_rows = piece.query_length * arguments_.heads_per_kv_head;
    piece.index = block - piece.kv_head * num_blocks;
    const DecodeSequence sequence =
        items_of(piece.query_length, piece.context_length, own_begin_from_lane());
    const int num_tiles = sequence.num_tiles;
    const int share = even_decode_share(
        num_tiles, num_blocks, division_.max_whole_tiles, division_.least_tiles,
        [&](int n) { return static_cast<int>(item_blocks.divide(static_cast<uint32_t>(n))); });
    const int begin = piece.index * share;
    piece.tile_begin = sequence.first_tile + begin;
    piece.tile_end = sequence.first_tile + min(begin + share, num_tiles);
    piece.owners = {.first_block = block - piece.index,
                    .count = max(1, (num_tiles + share - 1) / share)};
    return piece.kv_head < arguments_.num_kv_heads && piece.num_rows > 0 &&
           (begin < num_tiles || piece.index == 0);
  }

  __device__ void divide_unevenly() {
    DecodeTotals totals{};
    for (int base = 0; base < arguments_.num_decodes; base += kWarpSize) {
      if (base != base_) load(base);
      totals.add(own_items());
    }
    totals.num_items = __reduce_add_sync(kFullWarp, totals.num_items);
    totals.payload = __reduce_add_sync(kFullWarp, totals.payload);
    totals.longest_tiles = __reduce_max_sync(kFullWarp, totals.longest_tiles);
    const int num_blocks = static_cast<int>(gridDim.x);
    share_ = packed_decode_share(totals, num_blocks, keeps_whole());
    if (!keeps_whole() && arguments_.num_decodes <= kMaxAlignedSequences &&
        totals.num_items <= num_blocks) {
      align(num_blocks);
    }
    begin_ = static_cast<int>(blockIdx.x) * share_.tiles;
    end_ = begin_ + share_.tiles;
    seek();
  }

  // Takes an aligned division if there is one; every lane tries one candidate.
  __device__ void align(int num_blocks) {
    static_assert(kDecodeCandidates == kWarpSize && kMaxAlignedSequences <= kWarpSize);
    const DecodeSequence own = own_items();
    const DecodeShare candidate = aligned_decode_share(share_, lane_index());
    int payload = 0;
    for (int lane = 0; lane < arguments_.num_decodes; ++lane) {
      payload += __shfl_sync(kFullWarp, own.num_items, lane) *
                 candidate.payload(__shfl_sync(kFullWarp, own.num_tiles, lane));
    }
    const uint32_t fits = __ballot_sync(kFullWarp, payload <= num_blocks * candidate.tiles);
    if (fits == 0) return;
    const int tiles = __shfl_sync(kFullWarp, candidate.tiles, __ffs(static_cast<int>(fits)) - 1);
    share_ = {.tiles = tiles, .most_moved = DecodeShare::kAligned};
  }

  // Finds the item in which the block's share begins; there may be none.
  __device__ void seek() {
    item_begin_ = end_;
    int before = 0;  // payload of the sequences before these 32
    for (int base = 0; base < arguments_.num_decodes; base += kWarpSize) {
      if (base != base_) load(base);
      const DecodeSequence own = own_items();
      const int item_payload = share_.payload(own.num_tiles);
      const int payload = own.num_items * item_payload;
      int inclusive = before + payload;
#pragma unroll
      for (int distance = 1; distance < kWarpSize; distance *= 2) {
        const int lower = __shfl_up_sync(kFullWarp, inclusive - before, distance);
        if (lane_index() >= distance) inclusive += lower;
      }
      const uint32_t reached = __ballot_sync(kFullWarp, inclusive > begin_);
      if (reached != 0) {
        lane_ = __ffs(static_cast<int>(reached)) - 1;
        const int own_item = (begin_ - (inclusive - payload)) / item_payload;
        item_ = from_lane(own_item);
        item_begin_ = from_lane(inclusive - payload + own_item * item_payload);
        return;
      }
      before = __shfl_sync(kFullWarp, inclusive, kWarpSize - 1);
    }
  }

  __device__ int from_lane(int value) const { return __shfl_sync(kFullWarp, value, lane_); }
  __device__ int own_begin_from_lane() const {
    if constexpr (kPart == DecodePart::kOwn) return from_lane(own_.own_begin());
    return 0;
  }

  const AttentionArguments& arguments_;
  DecodeDivision division_;
  bool keeps_whole_;       // no item is divided
  bool has_only_ = false;  // next() is to give the only piece of an even division
  DecodeShare share_;
  int begin_, end_ = 0;       // this block's share of the list
  int item_begin_ = 0;        // where the next item begins
  int item_ = 0;              // the next item of the current sequence
  int base_ = -1, lane_ = 0;  // the current sequence is base_ + lane_
  Lengths known_[kKnown];     // lengths of sequences 32 k + lane
  Lengths own_;               // lengths of sequence base_ + lane
};

}  // namespace tessera
