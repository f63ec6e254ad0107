// Which tile of queries a block computes next, and which keys it needs.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention/arguments.cuh"

namespace tessera {

// Up to kTileQueries query rows of one sequence and one head, and the tiles of kTileKeys keys that
// they see, [first_key_tile, end_key_tile).
struct PrefillTile {
  int sequence;
  int head;
  int first_token;     // of the step, row 0
  int num_rows;        // 0: there is nothing more to do
  int first_position;  // in the context, row 0; may be negative
  int context_length;
  int first_key_tile;
  int end_key_tile;
};

// Bytes of the keys and values that all blocks work on at a time: few enough to stay in the L2
// cache, 60 MB on an H200. Without such sections, a prompt of 128k reads them from memory again and
// again (570 instead of 620 TFLOP/s).
inline constexpr int64_t kSectionBytes = int64_t{32} << 20;

// The tiles of a launch in the order in which they are handed out: one section of heads after the
// other. Within a section the last queries of all sequences come first: they see the most keys, and
// so the blocks finish at about the same time. Query heads that share a KV head are neighbours.
struct PrefillSchedule {
  int num_sequences;    // that are prefills
  int num_query_tiles;  // of the longest sequence
  int section_heads;    // query heads whose tiles come before those of the next ones
  // Tiles that are dealt out, one to each block; the others are taken. None beside decodes, where
  // some blocks find room only when the decodes are done.
  int num_dealt = 0;
  int32_t* next_tile;  // [2]: tiles taken; blocks finished

  __device__ bool runs_beside_decodes() const { return num_dealt == 0; }

  __device__ int num_tiles(int num_heads) const {
    return num_query_tiles * num_sequences * num_heads;
  }

  // Tile `index` of the order; num_rows is 0 when the sequence has fewer query tiles.
  template <int kTileQueries, int kTileKeys>
  __device__ PrefillTile tile(const AttentionArguments& arguments, int index) const {
    PrefillTile tile;
    const int section_tiles = num_query_tiles * num_sequences * section_heads;
    const int section = index / section_tiles;
    const int heads = min(section_heads, arguments.num_heads - section * section_heads);
    const int in_section = index - section * section_tiles;
    const int rest = in_section / heads;
    tile.head = section * section_heads + in_section - rest * heads;
    tile.sequence = arguments.num_decodes + rest % num_sequences;
    const int first_row = (num_query_tiles - 1 - rest / num_sequences) * kTileQueries;
    const int begin = arguments.query_starts[tile.sequence];
    const int query_length = arguments.query_starts[tile.sequence + 1] - begin;
    tile.context_length = arguments.context_lengths[tile.sequence];
    tile.first_token = begin + first_row;
    tile.num_rows = max(0, min(kTileQueries, query_length - first_row));
    tile.first_position = tile.context_length - query_length + first_row;
    const int keys_end = arguments.causal
                             ? max(0, min(tile.context_length, tile.first_position + tile.num_rows))
                             : tile.context_length;
    tile.first_key_tile = max(0, tile.first_position + 1 - arguments.window) / kTileKeys;
    tile.end_key_tile = (keys_end + kTileKeys - 1) / kTileKeys;
    return tile;
  }

  // Takes the next tile. Called by one thread of a block.
  __device__ int take_next() const { return num_dealt + atomicAdd(next_tile, 1); }

  // Called by one thread of each block when it takes no more tiles. The last one resets the
  // counters for the next launch.
  __device__ void finish() const {
    __threadfence();
    if (atomicAdd(next_tile + 1, 1) == static_cast<int>(gridDim.x) - 1) {
      next_tile[0] = 0;
      next_tile[1] = 0;
    }
  }
};

}  // namespace tessera
