// The copying side of the Hopper prefill kernel.
#pragma once

#include "kernels/cuda/attention/prefill/tiles.cuh"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"

namespace tessera {

// One warp that keeps the rings full. Lane i copies box i of a tile.
template <typename Config>
struct PrefillProducer {
  PrefillShared<Config>& shared;
  const AttentionArguments& arguments;
  const PrefillSchedule& schedule;
  const PrefillMaps& maps;
  RingPosition keys, values, queries;

  // The page of this lane's box of a tile of keys, or -1 when there is nothing to read.
  __device__ int page_of_box(const PrefillTile& tile, int key_tile) const {
    const int box = lane_index();
    if (key_tile < 0 || box >= Config::kTileKeys / maps.box_tokens) return -1;
    const int token = key_tile * Config::kTileKeys + box * maps.box_tokens;
    const int visible_begin = tile.first_position + 1 - arguments.window;
    if (token >= tile.context_length || token + maps.box_tokens <= visible_begin) return -1;
    const int32_t* const table = arguments.block_tables + tile.sequence * arguments.max_pages;
    return table[arguments.page_size.divide(token)];
  }

  template <int kStageElements>
  __device__ void copy_tile(const CUtensorMap* map,
                            typename Config::Element (&tiles)[Config::kStages][kStageElements],
                            uint64_t* full, uint64_t* empty, RingPosition& ring, int key_tile,
                            int kv_head, int page) const {
    const uint32_t boxes = __ballot_sync(kFullWarp, page >= 0);
    mbarrier_wait(&empty[ring.stage], ring.parity ^ 1);
    if (lane_index() == 0) {
      constexpr int kRowBytes = Config::kPanels * kPanelRowBytes;
      mbarrier_expect_bytes(&full[ring.stage], __popc(boxes) * maps.box_tokens * kRowBytes);
    }
    __syncwarp();
    if (page >= 0) {
      const int box_row = lane_index() * maps.box_tokens;
      const uint32_t token = key_tile * Config::kTileKeys + box_row;
      const int page_row =
          token - arguments.page_size.divide(token) * arguments.page_size.divisor();
#pragma unroll
      for (int panel = 0; panel < Config::kPanels; ++panel) {
        copy_page_box_async(
            tiles[ring.stage] + (panel * Config::kTileKeys + box_row) * kPanelColumns, map,
            &full[ring.stage], panel * kPanelColumns, page_row, kv_head, page);
      }
    }
    ring.advance(1, Config::kStages);
  }
  __device__ void copy_keys(const PrefillTile& tile, int key_tile, int page) {
    copy_tile(&maps.keys, shared.keys, shared.key_full, shared.key_empty, keys, key_tile,
              tile.head / arguments.heads_per_kv_head, page);
  }
  __device__ void copy_values(const PrefillTile& tile, int key_tile, int page) {
    copy_tile(&maps.values, shared.values, shared.value_full, shared.value_empty, values, key_tile,
              tile.head / arguments.heads_per_kv_head, page);
  }

  // Hands the tile to the consumers together with its queries.
  __device__ void copy_queries(const PrefillTile& tile) {
    uint64_t* const full = &shared.query_full[queries.stage];
    mbarrier_wait(&shared.query_empty[queries.stage], queries.parity ^ 1);
    if (lane_index() == 0) {
      shared.tiles[queries.stage] = tile;
      if (tile.num_rows == 0 || tile.first_key_tile >= tile.end_key_tile) {
        mbarrier_arrive(full);
      } else {
        mbarrier_expect_bytes(full, sizeof(shared.queries[0]));
#pragma unroll
        for (int panel = 0; panel < Config::kQueryPanels; ++panel) {
          copy_query_box_async(
              shared.queries[queries.stage] + panel * Config::kTileQueries * kPanelColumns,
              &maps.query, full, panel * kPanelColumns, tile.head, tile.first_token);
        }
      }
    }
    queries.advance(1, Config::kQueryStages);
  }

  // A tile to copy and the pages of its first two tiles of keys.
  struct Upcoming {
    PrefillTile tile;
    int page, next_page;
  };

  // The first tile from `index` on that has queries. Looking it up takes several trips to memory,
  // one after the other, so it is done while there is enough to compute.
  __device__ Upcoming look_up(int index) const {
    Upcoming upcoming{};
    const int num_tiles = schedule.num_tiles(arguments.num_heads);
    while (index < num_tiles) {
      upcoming.tile = schedule.tile<Config::kTileQueries, Config::kTileKeys>(arguments, index);
      if (upcoming.tile.num_rows > 0) break;
      index = take_next();
    }
    look_up_pages(upcoming);
    return upcoming;
  }
  __device__ void look_up_pages(Upcoming& upcoming) const {
    const int key_tile = upcoming.tile.end_key_tile - 1;
    upcoming.page = page_of_box(upcoming.tile, key_tile);
    upcoming.next_page = page_of_box(upcoming.tile, key_tile - 1);
  }
  __device__ int take_next() const {
    int next = 0;
    if (lane_index() == 0) next = schedule.take_next();
    return __shfl_sync(kFullWarp, next, 0);
  }

  // Copies a tile of queries with its keys and values, and looks up the next one. The last keys
  // come first, since only they need a mask. Values follow one tile behind the keys, and pages are
  // looked up one tile ahead.
  __device__ Upcoming copy(const Upcoming& current) {
    const PrefillTile& tile = current.tile;
    int key_tile = tile.end_key_tile - 1;
    if (key_tile < tile.first_key_tile) {
      copy_queries(tile);
      return look_up(take_next());
    }
    int page = current.page;
    int next_page = current.next_page;
    copy_keys(tile, key_tile, page);
    copy_queries(tile);
    // Beside decodes tiles are taken one after the other from the first on: one that was taken
    // while the tile before it had long to go would wait for this block, though others may be free.
    const int look_up_at =
        schedule.runs_beside_decodes() ? tile.first_key_tile + 1 : tile.end_key_tile - 1;
    Upcoming upcoming;
    if (key_tile == tile.first_key_tile) upcoming = look_up(take_next());
    for (; key_tile > tile.first_key_tile; --key_tile) {
      const int later_page = page_of_box(tile, key_tile - 2);
      copy_keys(tile, key_tile - 1, next_page);
      copy_values(tile, key_tile, page);
      if (key_tile == look_up_at) upcoming = look_up(take_next());
      page = next_page;
      next_page = later_page;
    }
    copy_values(tile, key_tile, page);
    return upcoming;
  }

  __device__ void run() {
    // If this launch begins early, lengths and block tables may be read while the kernel before
    // ends. Numbers of tiles may not be taken: that kernel may be this one, launched before. Beside
    // decodes the kernel before is theirs, which lets this one begin when the step's queries, keys
    // and values are there (decode/block.cuh).
    Upcoming upcoming;
    if (schedule.runs_beside_decodes()) {
      upcoming = look_up(take_next());
    } else {
      upcoming.tile = schedule.tile<Config::kTileQueries, Config::kTileKeys>(
          arguments, static_cast<int>(blockIdx.x));
      look_up_pages(upcoming);
      wait_for_previous_results();
      if (upcoming.tile.num_rows == 0) upcoming = look_up(take_next());
    }
    while (upcoming.tile.num_rows > 0) upcoming = copy(upcoming);
    copy_queries({.num_rows = 0});
    // Who waits for this launch relies on the decodes' results too.
    if (schedule.runs_beside_decodes()) wait_for_previous_results();
    if (lane_index() == 0) schedule.finish();
  }
};

}  // namespace tessera
