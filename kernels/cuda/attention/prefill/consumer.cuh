// The computing side of the Hopper prefill kernel.
#pragma once

#include "kernels/cuda/attention/prefill/tiles.cuh"
#include "kernels/cuda/attention/prefill/warpgroup_attention.cuh"
#include "kernels/cuda/attention/prefill/warpgroup_turns.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"

namespace tessera {

// One warpgroup that computes 64 query rows of each tile.
template <typename Config>
struct PrefillConsumer {
  using Element = typename Config::Element;
  using Attention = WarpgroupAttention<Element, Config::kHeadDim, Config::kTileKeys>;

  PrefillShared<Config>& shared;
  const AttentionArguments& arguments;
  int box_tokens;
  WarpgroupTurns<Config::kWarpgroups> turns;
  RingPosition keys, values, queries;

  // Where the output of a tile goes.
  struct OutputRows {
    int head, first_token, num_rows;
    __device__ explicit OutputRows(const PrefillTile& tile)
        : head(tile.head), first_token(tile.first_token), num_rows(tile.num_rows) {}
  };

  __device__ static void release(uint64_t* empty) {
    if (lane_index() == 0) mbarrier_arrive(empty);
  }
  __device__ const Element* query_rows() const {
    return shared.queries[queries.stage] + turns.warpgroup * kWarpgroupRows * kPanelColumns;
  }
  // The number of the lane's first row in the tile; its second row is 8 further down.
  __device__ int lane_row() const {
    return turns.warpgroup * kWarpgroupRows + warp_index() % 4 * 16 + reread_lane_index() / 4;
  }

  __device__ __forceinline__ void mask(Attention& attention, int key_tile) const {
    const int first_key = key_tile * Config::kTileKeys;
    int begin[2];
    int end[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int position = tile().first_position + lane_row() + 8 * half;
      begin[half] = position + 1 - arguments.window - first_key;
      end[half] =
          (arguments.causal ? min(position + 1, tile().context_length) : tile().context_length) -
          first_key;
    }
    attention.mask(begin, end);
  }

  // Values that were not copied, or lie behind the end of the context, may be NaN, which a weight
  // of 0 does not hide.
  __device__ __forceinline__ void clear_unread_values(int key_tile) const {
    const int first_key = key_tile * Config::kTileKeys;
    const int end = tile().context_length - first_key;
    const int visible_begin = max(0, tile().first_position + 1 - arguments.window);
    const int begin = visible_begin / box_tokens * box_tokens - first_key;
    if (begin <= 0 && end >= Config::kTileKeys) return;
    mbarrier_wait(&shared.value_full[values.stage], values.parity);
    constexpr int kRowVectors = kPanelRowBytes / sizeof(uint4);
    constexpr int kVectors = Config::kPanels * Config::kTileKeys * kRowVectors;
    auto* const vectors = reinterpret_cast<uint4*>(shared.values[values.stage]);
    for (int i = threadIdx.x - kWarpgroupSize; i < kVectors; i += Config::kConsumerThreads) {
      const int row = i / kRowVectors % Config::kTileKeys;
      if (row < begin || row >= end) vectors[i] = make_uint4(0, 0, 0, 0);
    }
    fence_async_proxy();
    turns.synchronize();
  }

  template <bool kMasked>
  __device__ __forceinline__ void softmax(Attention& attention, int key_tile) const {
    if constexpr (Config::kSoftcap) attention.cap(arguments.softcap_scale);
    if constexpr (kMasked) mask(attention, key_tile);
    attention.template update_softmax<kMasked>(arguments.scale_log2);
  }

  __device__ __forceinline__ void wait_scores(Attention& attention) {
    pin_registers(attention.scores);
    release(&shared.key_empty[keys.stage]);
    keys.advance(1, Config::kStages);
  }
  __device__ __forceinline__ void wait_output(Attention& attention) {
    pin_registers(attention.output);
    release(&shared.value_empty[values.stage]);
    values.advance(1, Config::kStages);
  }

  // The tile whose queries are there, from next_tile() to release_queries(). It stays in shared
  // memory, since registers are what the loop is short of.
  __device__ const PrefillTile& tile() const { return shared.tiles[queries.stage]; }

  // Waits for the next tile that has keys; false when there is none.
  __device__ __forceinline__ bool next_tile() {
    while (true) {
      mbarrier_wait(&shared.query_full[queries.stage], queries.parity);
      if (tile().num_rows == 0) return false;
      if (tile().first_key_tile < tile().end_key_tile) return true;
      store_zeros(OutputRows(tile()));
      release_queries();
    }
  }
  __device__ __forceinline__ void release_queries() {
    mbarrier_arrive(&shared.query_empty[queries.stage]);  // every thread has read the tile
    queries.advance(1, Config::kQueryStages);
  }

  // Starts two products: the scores of the next tile of keys, then weights . values of the tile
  // before it.
  __device__ __forceinline__ void start_products(Attention& attention, bool accumulate) {
    mbarrier_wait(&shared.key_full[keys.stage], keys.parity);
    turns.wait();
    attention.template start_scores<Config::kTileQueries>(query_rows(), shared.keys[keys.stage]);
    mbarrier_wait(&shared.value_full[values.stage], values.parity);
    attention.start_output(shared.values[values.stage], accumulate);
    turns.pass_on();
    wgmma_wait<1>();
    wait_scores(attention);
  }

  // One tile of keys: its softmax is computed while the values of the one before it are multiplied.
  template <bool kMasked>
  __device__ __forceinline__ void step(Attention& attention, int key_tile, bool accumulate) {
    start_products(attention, accumulate);
    softmax<kMasked>(attention, key_tile);
    wgmma_wait<0>();
    wait_output(attention);
    attention.round_weights();
    attention.rescale_output();
    if constexpr (kMasked) clear_unread_values(key_tile);
  }

  // The first tile of keys, which is the last of the context: there is nothing yet to overlap with.
  __device__ __forceinline__ void begin(Attention& attention) {
    mbarrier_wait(&shared.key_full[keys.stage], keys.parity);
    attention.template start_scores<Config::kTileQueries>(query_rows(), shared.keys[keys.stage]);
    wgmma_wait<0>();
    wait_scores(attention);
    attention.reset();
    softmax<true>(attention, tile().end_key_tile - 1);
    attention.round_weights();
    clear_unread_values(tile().end_key_tile - 1);
  }

  // All tiles of keys but the first, which begin() or change_tile() has computed. The product with
  // the last tile's values is left to do. Returns whether there is output to add it to.
  __device__ __forceinline__ bool advance(Attention& attention) {
    // Tiles of keys [unmasked_begin, unmasked_end) are seen whole by all rows.
    const int last_position = tile().first_position + Config::kTileQueries - 1;
    const int unmasked_end =
        (arguments.causal ? max(0, min(tile().first_position + 1, tile().context_length))
                          : tile().context_length) /
        Config::kTileKeys;
    const int unmasked_begin =
        min(unmasked_end, (max(0, last_position + 1 - arguments.window) + Config::kTileKeys - 1) /
                              Config::kTileKeys);
    bool accumulate = false;
    int key_tile = tile().end_key_tile - 2;
    for (; key_tile >= max(unmasked_end, tile().first_key_tile); --key_tile) {
      step<true>(attention, key_tile, accumulate);
      accumulate = true;
    }
    for (; key_tile >= max(unmasked_begin, tile().first_key_tile); --key_tile) {
      step<false>(attention, key_tile, accumulate);
      accumulate = true;
    }
    for (; key_tile >= tile().first_key_tile; --key_tile) {
      step<true>(attention, key_tile, accumulate);
      accumulate = true;
    }
    return accumulate;
  }

  // begin() of the next tile while the last values of this one are multiplied; then stores this
  // one.
  __device__ __forceinline__ void change_tile(Attention& attention, const OutputRows& rows,
                                              bool accumulate) {
    start_products(attention, accumulate);
    attention.finish_sums();
    const float row_sum[2] = {attention.row_sum[0], attention.row_sum[1]};
    attention.reset();
    softmax<true>(attention, tile().end_key_tile - 1);
    wgmma_wait<0>();
    wait_output(attention);
    store(attention, row_sum, rows);
    attention.round_weights();
    clear_unread_values(tile().end_key_tile - 1);
  }

  // Multiplies the last values of the last tile.
  __device__ __forceinline__ void finish(Attention& attention, const OutputRows& rows,
                                         bool accumulate) {
    mbarrier_wait(&shared.value_full[values.stage], values.parity);
    attention.start_output(shared.values[values.stage], accumulate);
    attention.finish_sums();
    wgmma_wait<0>();
    wait_output(attention);
    store(attention, attention.row_sum, rows);
  }

  __device__ uint32_t* out_row(const OutputRows& rows, int row) const {
    const int64_t head_row = int64_t{rows.first_token + row} * arguments.num_heads + rows.head;
    return reinterpret_cast<uint32_t*>(static_cast<Element*>(arguments.out) +
                                       head_row * Config::kHeadDim);
  }

  __device__ __forceinline__ void store(const Attention& attention, const float (&row_sum)[2],
                                        const OutputRows& rows) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane_row() + 8 * half;
      if (row >= rows.num_rows) continue;
      const float sum = row_sum[half];
      const float factor = sum > 0.0f ? 1.0f / sum : 0.0f;  // 0: a row that sees no key
      uint32_t* const out = out_row(rows, row) + lane_index() % 4;
#pragma unroll
      for (int n = 0; n < Config::kHeadDim / 8; ++n) {
        const float* const pair = attention.output + 4 * n + 2 * half;
        out[4 * n] = pack_pair<Element>(pair[0] * factor, pair[1] * factor);
      }
    }
  }

  __device__ void store_zeros(const OutputRows& rows) const {
    for (int half = 0; half < 2; ++half) {
      const int row = lane_row() + 8 * half;
      if (row >= rows.num_rows) continue;
      uint32_t* const out = out_row(rows, row) + lane_index() % 4;
      for (int i = 0; i < Config::kHeadDim / 8; ++i) out[4 * i] = 0;
    }
  }

  __device__ __forceinline__ void run() {
    turns.begin();
    if (!next_tile()) return;
    Attention attention;
    begin(attention);
    while (true) {
      const bool accumulate = advance(attention);
      const OutputRows rows(tile());
      release_queries();
      if (!next_tile()) return finish(attention, rows, accumulate);
      change_tile(attention, rows, accumulate);
    }
  }
};

}  // namespace tessera
