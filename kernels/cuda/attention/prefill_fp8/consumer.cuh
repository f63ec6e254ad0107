// The computing side of the FP8 prefill kernel. Its loop is that of prefill/consumer.cuh without
// turns; at the begin of a tile it rounds the queries.
#pragma once

#include "kernels/cuda/attention/prefill_fp8/queries.cuh"

namespace tessera {

// Queries have 128 elements of 16 bits, as OutElement, the type of the output. Of keys and values
// two e4m3 count as one element of 16 bits for the producer, and a row of 128 as one of 64.
template <typename OutElement_>
struct Fp8PrefillConfig {
  using Element = __nv_bfloat16;
  using OutElement = OutElement_;
  static constexpr int kHeadDim = kFp8HeadDim / 2;
  static constexpr int kWarpgroups = 2;
  static constexpr int kTileQueries = kWarpgroups * kWarpgroupRows;
  static constexpr int kTileKeys = kFp8TileKeys;
  static constexpr int kStages = 4;
  static constexpr int kQueryStages = 2;
  static constexpr int kConsumerThreads = kWarpgroupSize * kWarpgroups;
  static constexpr int kThreads = kWarpgroupSize + kConsumerThreads;
  static constexpr int kPanels = 1;
  static constexpr int kQueryPanels = kFp8HeadDim / kPanelColumns;
  static constexpr int kTileElements = kTileKeys * kHeadDim;
  static constexpr int kValueElements = kTileElements + kFp8SumRows * kFp8TileKeys / 2;
  static constexpr int kProducerRegisters = 24;
  static constexpr int kConsumerRegisters = 240;
};

// Makes the computation of `value` come before a wait for products that follows in the code. The
// assembler would move such a wait up over arithmetic, which would leave nothing to compute while
// the products run; it does not move the wait over a store to shared memory. `value` never is
// 0xffffffff, so nothing is ever stored.
__device__ __forceinline__ void compute_before_wait(uint32_t value, void* shared) {
  asm volatile(
      "{ .reg .pred p; setp.eq.u32 p, %0, 0xffffffff; @p st.shared.u32 [%1], %0; }" ::"r"(value),
      "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared)))
      : "memory");
}

// One warpgroup that computes 64 query rows of each tile.
template <typename Config>
struct Fp8PrefillConsumer {
  using OutElement = typename Config::OutElement;
  using Attention = Fp8WarpgroupAttention;

  PrefillShared<Config>& shared;
  Fp8QueryRows& rounded;  // of the warpgroup
  const AttentionArguments& arguments;
  const float* key_scales;    // [num_kv_heads]
  const float* value_scales;  // [num_kv_heads]
  int warpgroup;
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
  // The number of the lane's first row in the tile; its second row is 8 further down.
  __device__ int lane_row() const {
    return warpgroup * kWarpgroupRows + warp_index() % 4 * 16 + reread_lane_index() / 4;
  }
  __device__ const PrefillTile& tile() const { return shared.tiles[queries.stage]; }

  template <bool kMasked>
  __device__ __forceinline__ void softmax(Attention& attention, int key_tile) const {
    if constexpr (kMasked) {
      int end[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int position = tile().first_position + lane_row() + 8 * half;
        end[half] = min(position + 1, tile().context_length) - key_tile * Config::kTileKeys;
      }
      attention.mask(end);
    }
    attention.template update_softmax<kMasked>();
  }

  __device__ __forceinline__ void wait_scores(Attention& attention) {
    pin_registers(attention.scores);
    release(&shared.key_empty[keys.stage]);
    keys.advance(1, Config::kStages);
  }
  __device__ __forceinline__ void wait_part(Attention& attention) {
    pin_registers(attention.part);
    pin_registers(attention.part_sums);
    release(&shared.value_empty[values.stage]);
    values.advance(1, Config::kStages);
  }

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

  // Rounds the tile's queries, then starts the scores of its first tile of keys.
  __device__ __forceinline__ void start_tile(Attention& attention) {
    const float head_factor =
        arguments.scale_log2 * key_scales[tile().head / arguments.heads_per_kv_head];
    round_queries(rounded,
                  reinterpret_cast<const OutElement*>(shared.queries[queries.stage]) +
                      warpgroup * kWarpgroupRows * kPanelColumns,
                  Config::kTileQueries * kPanelColumns, head_factor, warpgroup);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      attention.factor[half] = rounded.factors[lane_row() % kWarpgroupRows + 8 * half];
    }
    mbarrier_wait(&shared.key_full[keys.stage], keys.parity);
    attention.start_scores(rounded.rows, shared.keys[keys.stage]);
  }

  // The softmax of the tile's first keys, the last of the context.
  __device__ __forceinline__ void finish_start(Attention& attention) {
    wgmma_wait<0>();
    wait_scores(attention);
    attention.forget_maximum();
    softmax<true>(attention, tile().end_key_tile - 1);
    attention.take_weights();
    attention.clear_output();
  }

  // Starts the scores of the next tile of keys, and weights . values of the tile before it.
  // Meanwhile the part before that is added to the output. This stands behind the wait for values,
  // because the assembler would otherwise move it up before the scores are started.
  __device__ __forceinline__ void start_products(Attention& attention) {
    mbarrier_wait(&shared.key_full[keys.stage], keys.parity);
    attention.start_scores(rounded.rows, shared.keys[keys.stage]);
    mbarrier_wait(&shared.value_full[values.stage], values.parity);
    attention.add_part();
    attention.start_part(shared.values[values.stage]);
    wgmma_wait<1>();
    wait_scores(attention);
  }

  // One tile of keys: its softmax is computed while the values of the one before it are multiplied.
  template <bool kMasked>
  __device__ __forceinline__ void step(Attention& attention, int key_tile) {
    start_products(attention);
    softmax<kMasked>(attention, key_tile);
    compute_before_wait(attention.last_codes(), &shared.tiles);
    wgmma_wait<0>();
    wait_part(attention);
    attention.take_weights();
  }

  // All tiles of keys but the first. Leaves the values of the last to be multiplied.
  __device__ __forceinline__ void advance(Attention& attention) {
    const int unmasked_end =
        max(0, min(tile().first_position + 1, tile().context_length)) / Config::kTileKeys;
    // A reduction leaves its result in a register that all lanes share, of which the loop has
    // enough.
    const int first_key_tile = __reduce_max_sync(kFullWarp, tile().first_key_tile);
    int key_tile = tile().end_key_tile - 2;
    for (; key_tile >= max(unmasked_end, first_key_tile); --key_tile) {
      step<true>(attention, key_tile);
    }
    for (; key_tile >= first_key_tile; --key_tile) step<false>(attention, key_tile);
  }

  // Starts the last values of a tile.
  __device__ __forceinline__ void start_last_part(Attention& attention) {
    attention.add_part();
    mbarrier_wait(&shared.value_full[values.stage], values.parity);
    attention.start_part(shared.values[values.stage]);
  }

  // Begins the next tile while the last values of this one are multiplied, and stores this one
  // while the next one's first scores are computed.
  __device__ __forceinline__ void change_tile(Attention& attention, const OutputRows& rows) {
    start_last_part(attention);
    start_tile(attention);
    wgmma_wait<1>();
    wait_part(attention);
    attention.add_part();
    store(attention, rows);
    finish_start(attention);
  }

  __device__ __forceinline__ void finish(Attention& attention, const OutputRows& rows) {
    start_last_part(attention);
    wgmma_wait<0>();
    wait_part(attention);
    attention.add_part();
    store(attention, rows);
  }

  __device__ uint32_t* out_row(const OutputRows& rows, int row) const {
    const int64_t head_row = int64_t{rows.first_token + row} * arguments.num_heads + rows.head;
    return reinterpret_cast<uint32_t*>(static_cast<OutElement*>(arguments.out) +
                                       head_row * kFp8HeadDim);
  }

  __device__ __forceinline__ void store(const Attention& attention, const OutputRows& rows) const {
    const float value_scale = value_scales[rows.head / arguments.heads_per_kv_head];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane_row() + 8 * half;
      if (row >= rows.num_rows) continue;
      const float sum = attention.row_sum[half];
      const float factor = sum > 0.0f ? value_scale / sum : 0.0f;  // 0: a row that sees no key
      uint32_t* const out = out_row(rows, row) + lane_index() % 4;
#pragma unroll
      for (int n = 0; n < kFp8HeadDim / 8; ++n) {
        const float* const pair = attention.output + 4 * n + 2 * half;
        out[4 * n] = pack_pair<OutElement>(pair[0] * factor, pair[1] * factor);
      }
    }
  }

  __device__ void store_zeros(const OutputRows& rows) const {
    for (int half = 0; half < 2; ++half) {
      const int row = lane_row() + 8 * half;
      if (row >= rows.num_rows) continue;
      uint32_t* const out = out_row(rows, row) + lane_index() % 4;
      for (int i = 0; i < kFp8HeadDim / 8; ++i) out[4 * i] = 0;
    }
  }

  __device__ __forceinline__ void run() {
    if (!next_tile()) return;
    Attention attention;
    start_tile(attention);
    finish_start(attention);
    while (true) {
      advance(attention);
      const OutputRows rows(tile());
      release_queries();
      if (!next_tile()) return finish(attention, rows);
      change_tile(attention, rows);
    }
  }
};

}  // namespace tessera
