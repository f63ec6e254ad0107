// Which decode attention kernel runs, and with what. Plain arithmetic, no CUDA.
//
// Context lengths are not needed: they change from step to step while a captured CUDA graph does
// not, so the kernel divides the work itself (attention/decode/partition.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/decode/partition.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/tensor/check.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

// The most stages of the ring in shared memory: what the copy engine fills with heads of 64, whose
// tiles have 16 KiB, and what all others fill. 64 contexts of 1,088 tokens take 36.4 us on an H200
// with twelve, 36.7 with eight; in float8_e4m3 with heads of 128, whose tiles have 16 KiB too, 47.9
// with twelve and 47.2 with eight when a warp took 16 keys at a time (docs/experiments/
// attention.md). Loads were measured with eight only.
inline constexpr int kMaxDecodeStages = 12;
inline constexpr int kMaxOtherDecodeStages = 8;

struct DecodeAttentionShape {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t page_size = 0;         // tokens
  int64_t max_query_length = 1;  // tokens per sequence
  bool is_fp8 = false;           // keys and values are float8_e4m3
  GpuTraits gpu;

  // Bytes of a key.
  int64_t row_bytes() const { return is_fp8 ? head_dim : 2 * head_dim; }
};

struct DecodeAttentionPlan {
  static constexpr int64_t kTileRows = 16;   // rows of a tensor-core tile
  static constexpr int64_t kNarrowRows = 8;  // its columns

  bool uses_copy_engine = false;
  int64_t num_blocks = 0;
  int64_t page_size = 0;   // tokens
  int64_t num_stages = 0;  // tiles of keys and values that a block's ring holds
  int64_t box_tokens = 0;  // rows of a copy, within a page
  int64_t item_rows = 0;   // query rows that a block computes at a time
  int64_t row_tiles = 0;   // tensor-core tiles of these rows, a power of two
  bool is_narrow = false;  // no item has more than kNarrowRows: narrow_warp.cuh
  int64_t shared_bytes = 0;
  bool keeps_whole = false;  // no item is divided
  std::string_view reason;
};

// Whether there are kernels that the copy engine feeds for keys of so many bytes. It could bring
// rows of 64 bytes too, those of heads of 64 in float8_e4m3, but loads feed these faster: 16
// contexts of 8k take 48.5 us and took 57.0 (H200).
constexpr bool decode_copies_boxes(int64_t row_bytes) {
  return row_bytes >= 128 && row_bytes % 64 == 0;
}

// Warps that compute. Each holds 16 output rows in registers, so wide heads leave room for fewer.
constexpr int decode_warps(int64_t head_dim) { return head_dim > 128 ? 4 : 8; }

// Keys that a warp takes at a time, of so many bytes each: as many as its registers allow.
constexpr int decode_step_keys(int64_t row_bytes) { return row_bytes > 128 ? 16 : 32; }

// Warps that take the same 16 rows divide the steps of a tile. If there are more of these warps
// than steps, sets of warps take turns at the tiles.
constexpr int decode_tile_sets(int64_t head_dim, int64_t row_bytes, int64_t row_tiles) {
  const auto warps = decode_warps(head_dim) / static_cast<int>(row_tiles);
  return std::max(1, warps / (kDecodeTileTokens / decode_step_keys(row_bytes)));
}

// Floats between rows where warps leave their results for each other: 8 more than a row has, so
// that four neighbouring rows lie in different banks.
constexpr int64_t decode_staging_stride(int64_t head_dim) { return head_dim + 8; }

// Bytes of a tile of keys and one of values.
constexpr int64_t decode_stage_bytes(int64_t row_bytes) {
  return 2 * kDecodeTileTokens * row_bytes;
}

// Each warp's rows and their maxima and sums, behind the ring.
constexpr int64_t decode_staging_bytes(int64_t head_dim, int64_t row_tiles, int64_t item_rows) {
  return decode_warps(head_dim) / row_tiles * item_rows * (decode_staging_stride(head_dim) + 2) *
         int64_t{sizeof(float)};
}

// Shared memory that a plan leaves to the kernel's own variables.
inline constexpr int64_t kDecodeStaticBytes = 1024;

// The most query tokens of a sequence that a block computes at a time. Which warps share the keys
// depends on this number, and so does DecodeAttentionPlan::is_narrow. So batch-invariant plans have
// one for all lengths: that of a tile, which is never narrow.
inline int64_t decode_item_queries(const DecodeAttentionShape& shape) {
  if (!shape.gpu.is_batch_invariant()) {
    return std::clamp<int64_t>(shape.max_query_length, 1, kMaxDecodeQueryLength);
  }
  const int64_t heads_per_kv_head = shape.num_heads / shape.num_kv_heads;
  return std::max<int64_t>(1, DecodeAttentionPlan::kTileRows / heads_per_kv_head);
}

// The most query rows of one KV head that a block computes at a time.
inline int64_t max_decode_item_rows(const DecodeAttentionShape& shape) {
  const int64_t rows = shape.num_heads / shape.num_kv_heads * decode_item_queries(shape);
  return std::min(rows, DecodeAttentionPlan::kTileRows * decode_warps(shape.head_dim));
}

inline DecodeAttentionPlan plan_decode_attention(const DecodeAttentionShape& shape) {
  constexpr int64_t kAlignmentBytes = 1024;  // of the ring
  DecodeAttentionPlan plan;
  plan.num_blocks = shape.gpu.num_multiprocessors;
  plan.page_size = shape.page_size;
  plan.keeps_whole = shape.gpu.is_batch_invariant();
  // The largest power of two that divides both a page and a tile.
  plan.box_tokens = std::min<int64_t>(shape.page_size & -shape.page_size, kDecodeTileTokens);
  if (!shape.gpu.runs_hopper()) {
    plan.reason = "there is no copy engine to use";
  } else if (!decode_copies_boxes(shape.row_bytes())) {
    plan.reason = "it takes rows of 128 bytes or more, in multiples of 64";
  } else {
    plan.uses_copy_engine = true;
    plan.reason = "it reads faster than loads do";
  }

  const int64_t stage_bytes = decode_stage_bytes(shape.row_bytes());
  plan.item_rows = max_decode_item_rows(shape);
  while (true) {
    const int64_t row_tiles = ceil_divide(plan.item_rows, DecodeAttentionPlan::kTileRows);
    plan.row_tiles = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(row_tiles)));
    const int64_t other_bytes =
        kDecodeStaticBytes + kAlignmentBytes +
        decode_staging_bytes(shape.head_dim, plan.row_tiles, plan.item_rows);
    // A stage is always read by the same set of warps: a warp that skipped a phase of a barrier
    // could take it for the next one.
    const int64_t sets = decode_tile_sets(shape.head_dim, shape.row_bytes(), plan.row_tiles);
    const int64_t stages = std::clamp<int64_t>(
        (shape.gpu.shared_bytes - other_bytes) / stage_bytes, 0,
        plan.uses_copy_engine && !shape.is_fp8 ? kMaxDecodeStages : kMaxOtherDecodeStages);
    plan.num_stages = stages - stages % sets;
    plan.shared_bytes = other_bytes - kDecodeStaticBytes + plan.num_stages * stage_bytes;
    // Fewer rows at a time read keys and values more often, but leave room for them.
    if (plan.num_stages > 0 || plan.item_rows == 1) break;
    plan.item_rows = ceil_divide(plan.item_rows, int64_t{2});
  }
  plan.is_narrow = plan.uses_copy_engine && plan.item_rows <= DecodeAttentionPlan::kNarrowRows;
  return plan;
}

// For people: "the copy engine, 6 tiles of 64 tokens per block, because ...".
inline std::string describe(const DecodeAttentionPlan& plan) {
  return concat(plan.uses_copy_engine ? "the copy engine" : "loads", ", ", plan.num_stages,
                " tiles of ", kDecodeTileTokens, " tokens per block: ", plan.reason);
}

// Float32 elements of the partial results: for each slot and row, an output row and its
// log2-sum-exp. Enough for any lengths, and for any plan whose queries are no longer.
inline int64_t decode_partial_elements(const DecodeAttentionShape& shape) {
  return num_decode_slots(static_cast<int>(shape.gpu.num_multiprocessors)) *
         max_decode_item_rows(shape) * (shape.head_dim + 1);
}

}  // namespace tessera
