// Which keys each thread block of decode attention reads. Plain arithmetic for host and device.
//
// The work is a list of items: for every sequence, KV head and block of query rows, the tiles of
// keys that these rows see. Laid end to end they are cut into shares, one per block (the scheme of
// FlashMLA), in one of four ways:
//   even      One sequence, with more blocks than items. All items get the same number of blocks,
//             which is known without the length.
//   aligned   Every item begins with a new share, so no block has two items. This is faster than
//             packed when there are few items and some division leaves few blocks idle.
//   packed    All shares are equal, except that an end of a share that would fall near an end of a
//             short item moves there. A few tiles more for one block cost less than a merge, since
//             a block reads faster when others have nothing left to read. Each item counts
//             kDecodeItemOverhead tiles more than it has. Of a block's items at most two, the first
//             and the last, are shared with other blocks.
//   whole     As packed, but all ends move: the block in whose share the middle of an item lies
//             reads all of it. So the sums of a row are taken in the same order whatever else a
//             step holds. The price is that few blocks work where items are few.
#pragma once

#include <algorithm>
#include <span>

namespace tessera {

inline constexpr int kDecodeTileTokens = 64;

// What starting and finishing an item costs, in tiles.
inline constexpr int kDecodeItemOverhead = 1;

// What the heads, the mask and the plan have in common for all sequences.
struct DecodeItemShape {
  int heads_per_kv_head;
  int num_kv_heads;
  int item_rows;             // most query rows of an item
  int window;                // keys a query sees, itself included; huge: all
  bool keeps_whole = false;  // no item is divided
};

// Items that are kept whole begin at a multiple of this many tiles. So sets of warps, of which
// there are at most as many, take turns at a context's tiles in the same way, whichever of the
// context's queries are computed.
inline constexpr int kWholeItemTiles = 8;

// The items of one sequence. All read the same tiles.
struct DecodeSequence {
  int first_tile;  // the first tile that the first query sees
  int num_tiles;   // from there up to the context's end
  int row_blocks;
  int num_items;  // KV heads * row_blocks
};

// `begin`: the first token that is read.
constexpr DecodeSequence decode_sequence(const DecodeItemShape& shape, int query_length,
                                         int context_length, int begin = 0) {
  const int first_visible = std::max(begin, context_length - query_length + 1 - shape.window);
  int first_tile = first_visible / kDecodeTileTokens;
  if (shape.keeps_whole) first_tile -= first_tile % kWholeItemTiles;
  const int end_tile = (context_length + kDecodeTileTokens - 1) / kDecodeTileTokens;
  const int rows = query_length * shape.heads_per_kv_head;
  const int row_blocks =
      rows <= shape.item_rows ? (rows > 0 ? 1 : 0) : (rows + shape.item_rows - 1) / shape.item_rows;
  return {.first_tile = first_tile,
          .num_tiles = std::max(0, end_tile - first_tile),
          .row_blocks = row_blocks,
          .num_items = row_blocks * shape.num_kv_heads};
}

// Splitting an item costs a merge, which takes about as long as one block takes to read eight
// tiles. So an item of up to eight tiles stays whole, and a longer one may be cut into pieces of
// down to two tiles.
inline constexpr int kMaxWholeTiles = 8;
inline constexpr int kLeastSplitTiles = 2;

// What a block reads, in tiles. It is two numbers, computed once: blocks walk along their shares
// before they can ask for the first key, and the step in one kernel has no registers for more.
struct DecodeShare {
  static constexpr int kAligned = -1;           // most_moved of an aligned share
  static constexpr int kAnyDistance = 1 << 30;  // most_moved where no item may be cut

  int tiles;
  int most_moved;  // how far an end may move so that it does not cut an item

  constexpr bool is_aligned() const { return most_moved == kAligned; }
  constexpr int overhead() const { return is_aligned() ? 0 : kDecodeItemOverhead; }
  // How far an end moves at most that would cut an item of num_tiles. Items that are longer than
  // the share are cut anyway, unless none may be.
  constexpr int moved(int num_tiles) const {
    return num_tiles > std::max(tiles, most_moved) ? 0 : std::max(most_moved, 0);
  }
  // A cut at this tile of an item of num_tiles, or before it, moves to the item's begin.
  constexpr int moved_to_begin(int num_tiles) const {
    return std::min(moved(num_tiles), num_tiles / 2);
  }
  // The tile of an item at which an end of the share cuts it. `tile`: where the cut would be if
  // ends did not move; outside of [0, num_tiles] if that is in another item.
  constexpr int cut(int tile, int num_tiles) const {
    if (tile <= moved_to_begin(num_tiles)) return 0;
    return tile < num_tiles - moved(num_tiles) ? tile : num_tiles;
  }
  // How many tiles an item takes up in the list; at least one, so that some block writes its zeros.
  constexpr int payload(int num_tiles) const {
    if (!is_aligned()) return num_tiles + kDecodeItemOverhead;
    return num_tiles <= tiles ? tiles : (num_tiles + tiles - 1) / tiles * tiles;
  }
};

// Sums over all sequences.
struct DecodeTotals {
  int num_items;
  int payload;        // packed
  int longest_tiles;  // of one item

  constexpr void add(const DecodeSequence& sequence) {
    if (sequence.num_items == 0) return;
    num_items += sequence.num_items;
    payload += sequence.num_items * (sequence.num_tiles + kDecodeItemOverhead);
    longest_tiles = std::max(longest_tiles, sequence.num_tiles);
  }
};

// The share when the items are packed, or kept whole. If it has room for 3.5 equal items or more,
// none is cut.
constexpr DecodeShare packed_decode_share(const DecodeTotals& totals, int num_blocks,
                                          bool keeps_whole) {
  const int equal = (totals.payload + num_blocks - 1) / num_blocks;
  const int least = totals.longest_tiles <= kMaxWholeTiles ? kMaxWholeTiles + kDecodeItemOverhead
                                                           : kLeastSplitTiles;
  const int tiles = equal < least ? least : equal;
  if (keeps_whole) return {.tiles = tiles, .most_moved = DecodeShare::kAnyDistance};
  // Not std::max: device code cannot refer to kMaxWholeTiles.
  const int most = tiles / 7 < kMaxWholeTiles ? kMaxWholeTiles : tiles / 7;
  return {.tiles = tiles, .most_moved = std::min(most, tiles / 4)};
}

// Aligned shares to try, from the smallest to one a quarter larger than the packed share. The first
// with which all items fit the blocks is taken, if there is one. They are tried only for up to
// kMaxAlignedSequences sequences.
inline constexpr int kDecodeCandidates = 32;
inline constexpr int kMaxAlignedSequences = 32;
constexpr DecodeShare aligned_decode_share(const DecodeShare& packed, int candidate) {
  const int most_added = packed.tiles / 4 + 2;
  const int step = most_added / kDecodeCandidates + 1;
  const int least = packed.tiles > 2 ? packed.tiles - 1 : packed.tiles;
  return {.tiles = least + std::min(candidate * step, most_added),
          .most_moved = DecodeShare::kAligned};
}

// The share in the even way for an item of num_tiles; divide(n) is n divided by the item's blocks.
// An item of up to max_whole_tiles stays whole; pieces of a longer one have at least least_tiles.
// Nothing is divided by a number that the host did not know: that would delay the first read.
template <typename Divide>
constexpr int even_decode_share(int num_tiles, int item_blocks, int max_whole_tiles,
                                int least_tiles, const Divide& divide) {
  if (num_tiles <= max_whole_tiles) return max_whole_tiles;
  const int equal = divide(num_tiles + item_blocks - 1);
  return equal < least_tiles ? least_tiles : equal;
}

// How several `sequences` are divided over the blocks. DecodeItems computes the same with a warp,
// and tests compare the two.
inline DecodeShare decode_share(std::span<const DecodeSequence> sequences, int num_blocks,
                                bool keeps_whole) {
  DecodeTotals totals{};
  for (const DecodeSequence& sequence : sequences) totals.add(sequence);
  const DecodeShare packed = packed_decode_share(totals, num_blocks, keeps_whole);
  if (keeps_whole) return packed;
  if (sequences.size() > kMaxAlignedSequences || totals.num_items > num_blocks) return packed;
  for (int candidate = 0; candidate < kDecodeCandidates; ++candidate) {
    const DecodeShare share = aligned_decode_share(packed, candidate);
    int payload = 0;
    for (const auto& [first_tile, num_tiles, row_blocks, num_items] : sequences) {
      payload += num_items * share.payload(num_tiles);
    }
    if (payload <= num_blocks * share.tiles) return share;
  }
  return packed;
}

// The blocks that read the tiles of an item whose payload begins at item_begin, if it has any.
struct PieceOwners {
  int first_block;
  int count;
};
constexpr PieceOwners piece_owners(const DecodeShare& share, int item_begin, int num_tiles) {
  const int tiles_begin = item_begin + share.overhead();
  const int first_block = (tiles_begin + share.moved_to_begin(num_tiles)) / share.tiles;
  const int last_block = (tiles_begin + num_tiles - share.moved(num_tiles) - 1) / share.tiles;
  return {.first_block = first_block, .count = std::max(0, last_block - first_block) + 1};
}

// The tiles of that item, counted from its first, that `block` reads; begin == end: none.
struct DecodeTiles {
  int begin;
  int end;
};
constexpr DecodeTiles decode_tiles(const DecodeShare& share, int item_begin, int num_tiles,
                                   int block) {
  const int share_begin = block * share.tiles - item_begin - share.overhead();
  return {.begin = share.cut(share_begin, num_tiles),
          .end = share.cut(share_begin + share.tiles, num_tiles)};
}

// Where a block leaves the partial result of a piece. Every block has two slots: one for an item
// that began in an earlier block, one for an item that begins here and continues in the next.
constexpr int decode_slot(int block, bool is_first_piece) {
  return 2 * block + (is_first_piece ? 1 : 0);
}
constexpr int num_decode_slots(int num_blocks) { return 2 * num_blocks; }

}  // namespace tessera
