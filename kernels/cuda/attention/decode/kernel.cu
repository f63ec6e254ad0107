#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/kernel.h"
#include "kernels/cuda/attention/decode/merge.cuh"
#include "kernels/cuda/attention/decode/producer.cuh"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/attention/decode/warp.cuh"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/clock.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"

namespace tessera {
namespace {

struct DecodeArguments {
  DecodePartials partials;
  DecodeDivision division;
  bool keeps_whole;  // no item is divided
  int num_stages;
  int row_tiles;
  int box_tokens;
};

template <int kHeadDim, bool kCopyEngine>
struct DecodeThreads {
  static constexpr int kConsumerWarps = decode_warps(kHeadDim);
  static constexpr int kConsumers = kConsumerWarps * kWarpSize;
  static constexpr int kProducerWarps = kCopyEngine ? 1 : kDecodeTileTokens / kCopyTokens;
  static constexpr int kAll = kConsumers + kProducerWarps * kWarpSize;
};

// A barrier among the consumers only.
template <int kConsumers>
__device__ void sync_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kConsumers) : "memory");
}

// Adds this block's piece to the item's; true in the block that adds the last one, which then sees
// all of them. Resets the count for the next launch.
template <int kConsumers>
__device__ bool arrive_last(const DecodePiece& piece, const DecodePartials& partials, int thread) {
  __shared__ bool is_last;
  sync_consumers<kConsumers>();  // all partial results of this block are written
  if (thread == 0) {
    const uint32_t last = static_cast<uint32_t>(piece.owners.count - 1);
    uint32_t before;
    asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(partials.arrivals + piece.owners.first_block), "r"(last)
                 : "memory");
    is_last = before == last;
  }
  sync_consumers<kConsumers>();
  return is_last;
}

// What a consumer warp is for.
struct ConsumerRole {
  int row;    // of the item, the first of this warp's 16
  int slice;  // among the warps with the same rows
  int num_slices;
  int tile_sets;
  int tile_set;
  int key_begin;  // in a tile
  int key_step;

  __device__ ConsumerRole(int warp, int num_warps, int row_tiles, int step_keys)
      : row(warp % row_tiles * 16), slice(warp / row_tiles), num_slices(num_warps / row_tiles) {
    const int tile_steps = kDecodeTileTokens / step_keys;
    tile_sets = max(1, num_slices / tile_steps);
    tile_set = slice / tile_steps;
    key_begin = slice % tile_steps * step_keys;
    key_step = min(num_slices, tile_steps) * step_keys;
  }

  // The slice, numbered by which of a piece's tiles it has taken. Which set begins depends on the
  // pieces before, wrong guesses included; the order in which results are merged must not.
  // `skip`: tiles from the piece's end to the next tile of this warp's set.
  __device__ int slice_of_tiles(int tile_begin, int tile_end, int skip) const {
    const int first_tile = (skip + tile_end - tile_begin) & (tile_sets - 1);
    return slice + (first_tile - tile_set) * (num_slices / tile_sets);
  }
};

template <typename Element, int kHeadDim, bool kCopyEngine>
__device__ void consume(const AttentionArguments& arguments, const DecodeArguments& decode,
                        const DecodeRing<Element, kHeadDim>& ring) {
  using Rows = DecodeRows<Element, kHeadDim, kCopyEngine>;
  using Warp = DecodeWarp<Element, kHeadDim>;
  using Threads = DecodeThreads<kHeadDim, kCopyEngine>;
  constexpr int kConsumers = Threads::kConsumers;
  constexpr int kRowVectors = kHeadDim / 4;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_index();
  const DecodePartials& partials = decode.partials;
  const ConsumerRole role(warp_index(), Threads::kConsumerWarps, decode.row_tiles,
                          decode_step_keys(kHeadDim));

  Warp warp;
  RingPosition position;
  position.advance(role.tile_set, ring.num_stages);
  int skip = role.tile_set;  // tiles until the next one of this warp's set
  RingPosition next_piece;
  while (true) {
    const int slot = next_piece.stage;
    mbarrier_wait(&ring.signals.piece_full[slot], next_piece.parity);
    next_piece.advance(1, DecodeSignals::kPieces);
    const DecodePiece& piece = ring.signals.pieces[slot];
    if (piece.num_rows == 0) break;
    warp.load_queries(arguments, piece, piece.first_row + role.row,
                      piece.first_row + piece.num_rows);
    warp.reset();
    const int context_length = piece.context_length;
    const int tile_end = piece.tile_end;
    // Tokens that all rows of the item see need no mask: from the first that the last query sees to
    // the last that the first query sees.
    const int seen_by_all_begin = context_length - arguments.window;
    const int seen_by_all_end =
        arguments.causal ? context_length - piece.query_length + 1 : context_length;
    int tile = piece.tile_begin + skip;
    for (; tile < tile_end; tile += role.tile_sets) {
      const int stage = position.stage;
      const uint32_t key_tile = shared_address(ring.keys(stage));
      const uint32_t value_tile = shared_address(ring.values(stage));
      const int box_tokens =
          tile_box_tokens(context_length - tile * kDecodeTileTokens, decode.box_tokens);
      mbarrier_wait(&ring.signals.keys_full[stage], position.parity);
#pragma unroll 1
      for (int key = role.key_begin; key < kDecodeTileTokens; key += role.key_step) {
        const int first_token = tile * kDecodeTileTokens + key;
        warp.multiply_keys(Rows{key_tile, box_tokens}, key);
        warp.cap(arguments.softcap_scale);
        if (first_token < seen_by_all_begin || first_token + Warp::kKeys > seen_by_all_end) {
          warp.mask(first_token);
        }
        warp.update_softmax(arguments.scale_log2);
        mbarrier_wait(&ring.signals.values_full[stage], position.parity);
        const Rows values{value_tile, box_tokens};
        const int num_valid = context_length - first_token;
        if (num_valid < Warp::kKeys) {
          warp.template multiply_values<true>(values, key, num_valid);
        } else {
          warp.template multiply_values<false>(values, key, num_valid);
        }
      }
      if constexpr (kCopyEngine) fence_before_copies();
      __syncwarp();
      if (arrives_for_warp(lane)) mbarrier_arrive(&ring.signals.empty[stage]);
      position.advance(role.tile_sets, ring.num_stages);
    }
    skip = tile - tile_end;
    if (ring.signals.is_wrong_guess(piece)) {
      __syncwarp();
      if (arrives_for_warp(lane)) mbarrier_arrive(&ring.signals.piece_empty[slot]);
      continue;
    }

    warp.finish_sums();
    const DecodeStaging<kHeadDim> staging(ring.end(), role.num_slices, decode.division.item_rows);
    sync_consumers<kConsumers>();  // the item before has been read from the staging area
    staging.store(warp, role.slice_of_tiles(piece.tile_begin, tile_end, skip), role.row,
                  piece.num_rows);
    sync_consumers<kConsumers>();
    const bool is_whole = piece.owners.count == 1;
    for (int index = thread; index < piece.num_rows * kRowVectors; index += kConsumers) {
      const int row = index / kRowVectors;
      const int column = index % kRowVectors * 4;
      float log_sum;
      const float4 value = staging.merged(row, column, arguments.scale_log2, log_sum);
      if (is_whole) {
        store_output<Element, kHeadDim>(arguments, piece, row, column, value);
      } else {
        const int64_t partial = static_cast<int64_t>(row) * partials.num_slots +
                                decode_slot(static_cast<int>(blockIdx.x), piece.index == 0);
        *reinterpret_cast<float4*>(partials.outputs + partial * kHeadDim + column) = value;
        if (column == 0) partials.log_sums[partial] = log_sum;
      }
    }
    if (!is_whole && arrive_last<kConsumers>(piece, partials, thread)) {
      merge_pieces<Element, kHeadDim, kConsumers>(arguments, piece, partials, thread);
    }
    __syncwarp();
    if (arrives_for_warp(lane)) mbarrier_arrive(&ring.signals.piece_empty[slot]);
  }
}

template <typename Element, int kHeadDim, bool kCopyEngine>
__device__ void decode_block(const AttentionArguments& arguments, const DecodeArguments& decode,
                             const DecodePageMaps& maps) {
  using Threads = DecodeThreads<kHeadDim, kCopyEngine>;
  extern __shared__ unsigned char shared_bytes[];
  __shared__ DecodeSignals signals;
  static_assert(sizeof(signals) + sizeof(bool) < kDecodeStaticBytes);
  // The swizzle counts from multiples of 1024 bytes.
  unsigned char* const shared = shared_bytes + (-shared_address(shared_bytes) & 1023u);
  const DecodeRing<Element, kHeadDim> ring{reinterpret_cast<Element*>(shared), signals,
                                           decode.num_stages};

  PhaseClock clock(ClockedKernel::kAttentionDecode, threadIdx.x == 0, 3);
  const int producer_warp = warp_index() - Threads::kConsumerWarps;
  const int lane_offset = kCopyEngine
                              ? lane_index() * decode.box_tokens
                              : lane_index() * kDecodeTileTokens + producer_warp * kCopyTokens;
  PieceSource source(arguments, decode.division, decode.keeps_whole, signals, lane_offset,
                     producer_warp == 0);
  [[maybe_unused]] DecodeGuess guess;
  if (producer_warp < 0) {
    if (lane_index() == 0) {
      const int readers = Threads::kConsumerWarps / decode_tile_sets(kHeadDim, decode.row_tiles);
      signals.init(warp_index(), kCopyEngine ? 1 : Threads::kProducerWarps * kWarpSize, readers,
                   Threads::kConsumerWarps);
      if constexpr (kCopyEngine) {
        fence_barrier_init();
        if (warp_index() == 0) {
          prefetch_tensor_map(&maps.keys);
          prefetch_tensor_map(&maps.values);
        } else if (warp_index() == 1) {
          prefetch_tensor_map(&maps.last_keys);
          prefetch_tensor_map(&maps.last_values);
        }
      }
    }
  } else if constexpr (kCopyEngine) {
    guess = source.guess();
  }
  __syncthreads();  // the signals are there
  if (producer_warp < 0) {
    clock.end_phase(ClockPhase::kSetUp);
    wait_for_previous_kernel();
    clock.end_phase(ClockPhase::kWait);
    consume<Element, kHeadDim, kCopyEngine>(arguments, decode, ring);
    clock.end_phase(ClockPhase::kAttention);
  } else if constexpr (kCopyEngine) {
    fill_by_copy_engine<Element, kHeadDim>(source, guess, arguments, ring, maps, decode.box_tokens);
  } else {
    fill_by_loads<Element, kHeadDim>(source, arguments, ring, producer_warp);
  }
}

template <typename Element, int kHeadDim, bool kCopyEngine>
__global__ void __launch_bounds__((DecodeThreads<kHeadDim, kCopyEngine>::kAll), 1)
    attention_decode_kernel(const __grid_constant__ AttentionArguments arguments,
                            const __grid_constant__ DecodeArguments decode,
                            const __grid_constant__ DecodePageMaps maps) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  constexpr bool kIsBuilt = !kCopyEngine;
#else
  constexpr bool kIsBuilt = true;
#endif
  if constexpr (kIsBuilt) {
    decode_block<Element, kHeadDim, kCopyEngine>(arguments, decode, maps);
  } else {
    __trap();  // the plan takes the copy engine only where there is one
  }
}

// Whatever the lengths in device memory: the tiles of all items are counted in 32 bits.
void check_limits(const AttentionArguments& arguments, const DecodeAttentionPlan& plan) {
  const int64_t max_tokens = int64_t{arguments.max_pages} * plan.page_size;
  // Queries of all sequences together, and each sequence may begin a block of rows.
  const int64_t max_rows = int64_t{arguments.heads_per_kv_head} * arguments.num_tokens;
  const int64_t row_blocks = max_rows / plan.item_rows + arguments.num_decodes;
  const int64_t max_items = int64_t{arguments.num_kv_heads} * row_blocks;
  CHECK(max_tokens * plan.page_size < int64_t{1} << 32, "attention: block tables of ",
        arguments.max_pages, " pages of ", plan.page_size, " tokens are too long");
  CHECK(max_items * (max_tokens / kDecodeTileTokens + 2) < int64_t{1} << 31,
        "attention: ", arguments.num_decodes, " sequences of up to ", max_tokens,
        " tokens are too many");
}

template <typename Element, int kHeadDim, bool kCopyEngine>
void launch(const Tensor& out, const AttentionParams& params, const DecodeAttentionPlan& plan,
            uint32_t* arrivals, cudaStream_t stream) {
  const AttentionArguments arguments = make_attention_arguments(out, params);
  check_limits(arguments, plan);
  const int num_slots = num_decode_slots(static_cast<int>(plan.num_blocks));
  const int64_t item_blocks = plan.num_blocks / arguments.num_kv_heads;
  const bool is_even = !plan.keeps_whole && arguments.num_decodes == 1 && item_blocks > 1;
  float* const workspace = params.workspace.as<float>();
  const DecodeArguments decode = {
      .partials = {.outputs = workspace,
                   .log_sums = workspace + plan.item_rows * num_slots * kHeadDim,
                   .arrivals = arrivals,
                   .num_slots = num_slots},
      .division = {.item_rows = static_cast<int>(plan.item_rows),
                   .is_even = is_even,
                   .item_blocks = FastDivisor(static_cast<uint32_t>(is_even ? item_blocks : 2)),
                   .max_whole_tiles = kMaxWholeTiles,
                   .least_tiles = kLeastSplitTiles},
      .keeps_whole = plan.keeps_whole,
      .num_stages = static_cast<int>(plan.num_stages),
      .row_tiles = static_cast<int>(plan.row_tiles),
      .box_tokens = static_cast<int>(plan.box_tokens)};
  DecodePageMaps maps{};
  if constexpr (kCopyEngine) {
    const int box_tokens = static_cast<int>(plan.box_tokens);
    maps.keys = make_page_rows_tensor_map(params.pages.keys, box_tokens);
    maps.values = make_page_rows_tensor_map(params.pages.values, box_tokens);
    maps.last_keys = make_page_rows_tensor_map(params.pages.keys, kCopyTokens);
    maps.last_values = make_page_rows_tensor_map(params.pages.values, kCopyTokens);
  }
  const auto kernel = attention_decode_kernel<Element, kHeadDim, kCopyEngine>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(plan.shared_bytes)));
  const LaunchShape shape = {.blocks = dim3(static_cast<unsigned>(plan.num_blocks)),
                             .threads = DecodeThreads<kHeadDim, kCopyEngine>::kAll,
                             .shared_bytes = static_cast<size_t>(plan.shared_bytes)};
  attach_clocks();
  if constexpr (kCopyEngine) {
    launch_dependent(kernel, shape, stream, arguments, decode, maps);
  } else {
    kernel<<<shape.blocks, shape.threads, shape.shared_bytes, stream>>>(arguments, decode, maps);
    CUDA_CHECK(cudaGetLastError());
  }
}

}  // namespace

void launch_attention_decode(const Tensor& out, const AttentionParams& params,
                             const DecodeAttentionPlan& plan, uint32_t* arrivals,
                             cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_head_dim(params.pages.head_dim(), [&]<int kHeadDim>() {
      if constexpr (kHeadDim % 64 == 0) {
        if (plan.uses_copy_engine) {
          return launch<Element, kHeadDim, true>(out, params, plan, arrivals, stream);
        }
      }
      launch<Element, kHeadDim, false>(out, params, plan, arrivals, stream);
    });
  });
}

}  // namespace tessera
