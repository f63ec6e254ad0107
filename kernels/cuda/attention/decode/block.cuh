// A block of decode attention, in any format of keys and values: one warp, or four without the copy
// engine, fill the ring of tiles; the other warps compute.
//
// A Format says in what the kernels differ:
//   Element                    of queries and outputs
//   kHeadDim
//   RowElement, kRowElements   a row of keys or values for code that only copies rows: 16-bit
//                              elements, kHeadDim of them or half as many
//   Arguments                  AttentionArguments or derived from them
//   Warp                       what a warp computes: DecodeWarp, DecodeFp8Warp, or of narrow plans
//                              NarrowDecodeWarp, NarrowFp8DecodeWarp
//   kPart                      which tokens are read; if it is not kWhole, Arguments are
//                              SharedPrefixArguments
#pragma once

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/attention/decode/merge.cuh"
#include "kernels/cuda/attention/decode/producer.cuh"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/clock.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"

namespace tessera {

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

// Counts this block's piece of the item as finished. True in the block whose piece is the last to
// finish, which then sees the results of all pieces. The count is then 0 again for the next launch.
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
  int row;    // the first of this warp's 16 rows, counted in the item
  int slice;  // this warp's number among the warps with the same rows
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

  // This warp's place in the order in which results are merged: its slice, with the sets of warps
  // numbered by the piece's first tile that each has taken. Which set takes a piece's first tile
  // depends on the pieces before, wrong guesses included; the order of merging must not. `skip`:
  // tiles from the piece's end to the next tile of this warp's set.
  __device__ int slice_of_tiles(int tile_begin, int tile_end, int skip) const {
    const int first_tile = (skip + tile_end - tile_begin) & (tile_sets - 1);
    return slice + (first_tile - tile_set) * (num_slices / tile_sets);
  }
};

template <typename Format, bool kCopyEngine>
__device__ void consume(const typename Format::Arguments& arguments, const DecodeArguments& decode,
                        const DecodeRing<typename Format::RowElement, Format::kRowElements>& ring) {
  using Element = typename Format::Element;
  using Rows = DecodeRows<typename Format::RowElement, Format::kRowElements, kCopyEngine>;
  using Warp = typename Format::Warp;
  constexpr int kHeadDim = Format::kHeadDim;
  using Threads = DecodeThreads<kHeadDim, kCopyEngine>;
  constexpr int kConsumers = Threads::kConsumers;
  constexpr int kRowVectors = kHeadDim / 4;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = lane_index();
  const DecodePartials& partials = decode.partials;
  const ConsumerRole role(warp_index(), Threads::kConsumerWarps, decode.row_tiles, Warp::kKeys);

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
      if constexpr (kCopyEngine) fence_async_proxy();
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

    warp.finish(arguments, piece);
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
        const int64_t out_row = step_row(arguments, piece, piece.first_row + row);
        if constexpr (Format::kPart == DecodePart::kWhole) {
          store_output<Element, kHeadDim>(arguments, out_row, column, value);
        } else {
          store_part<Element, kHeadDim, Format::kPart>(arguments, out_row, column, value, log_sum);
        }
      } else {
        const int64_t partial = static_cast<int64_t>(row) * partials.num_slots +
                                decode_slot(static_cast<int>(blockIdx.x), piece.index == 0);
        *reinterpret_cast<float4*>(partials.outputs + partial * kHeadDim + column) = value;
        if (column == 0) partials.log_sums[partial] = log_sum;
      }
    }
    if (!is_whole && arrive_last<kConsumers>(piece, partials, thread)) {
      merge_pieces<Element, kHeadDim, kConsumers, Format::kPart>(arguments, piece, partials,
                                                                 thread);
    }
    __syncwarp();
    if (arrives_for_warp(lane)) mbarrier_arrive(&ring.signals.piece_empty[slot]);
  }
}

template <typename Format, bool kCopyEngine>
__device__ void decode_block(const typename Format::Arguments& arguments,
                             const DecodeArguments& decode, const DecodePageMaps& maps) {
  using RowElement = typename Format::RowElement;
  constexpr int kHeadDim = Format::kHeadDim;
  constexpr int kRowElements = Format::kRowElements;
  using Threads = DecodeThreads<kHeadDim, kCopyEngine>;
  extern __shared__ unsigned char shared_bytes[];
  __shared__ DecodeSignals signals;
  static_assert(sizeof(signals) + sizeof(bool) < kDecodeStaticBytes);
  // The swizzle counts from multiples of 1024 bytes.
  unsigned char* const shared = shared_bytes + (-shared_address(shared_bytes) & 1023u);
  const DecodeRing<RowElement, kRowElements> ring{reinterpret_cast<RowElement*>(shared), signals,
                                                  decode.num_stages};

  PhaseClock clock(ClockedKernel::kAttentionDecode, threadIdx.x == 0, 3);
  const int producer_warp = warp_index() - Threads::kConsumerWarps;
  const int lane_offset = kCopyEngine
                              ? lane_index() * decode.box_tokens
                              : lane_index() * kDecodeTileTokens + producer_warp * kCopyTokens;
  const int32_t* own_begins = nullptr;
  if constexpr (Format::kPart == DecodePart::kOwn) own_begins = arguments.shared.own_begins;
  PieceSource<Format::kPart> source(arguments, decode.division, decode.keeps_whole, signals,
                                    lane_offset, producer_warp == 0, own_begins);
  [[maybe_unused]] DecodeGuess guess;
  if (producer_warp < 0) {
    if (lane_index() == 0) {
      constexpr int kRowBytes = kRowElements * static_cast<int>(sizeof(RowElement));
      const int readers =
          Threads::kConsumerWarps / decode_tile_sets(kHeadDim, kRowBytes, decode.row_tiles);
      signals.init(warp_index(), decode.num_stages,
                   kCopyEngine ? 1 : Threads::kProducerWarps * kWarpSize, readers,
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
  __syncthreads();  // the barriers have been set up
  if (producer_warp < 0) {
    clock.end_phase(ClockPhase::kSetUp);
    pass_on_previous_results();
    clock.end_phase(ClockPhase::kWait);
    consume<Format, kCopyEngine>(arguments, decode, ring);
    clock.end_phase(ClockPhase::kAttention);
  } else if constexpr (kCopyEngine) {
    fill_by_copy_engine<RowElement, kRowElements>(source, guess, arguments, ring, maps,
                                                  decode.box_tokens);
  } else {
    fill_by_loads<RowElement, kRowElements>(source, arguments, ring, producer_warp);
  }
}

// A whole kernel. The code for the copy engine is compiled only for GPUs that have one, where alone
// the plan chooses it.
template <typename Format, bool kCopyEngine>
__device__ void run_decode_block(const typename Format::Arguments& arguments,
                                 const DecodeArguments& decode, const DecodePageMaps& maps) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  constexpr bool kIsBuilt = !kCopyEngine;
#else
  constexpr bool kIsBuilt = true;
#endif
  if constexpr (kIsBuilt) {
    decode_block<Format, kCopyEngine>(arguments, decode, maps);
  } else {
    __trap();
  }
}

}  // namespace tessera
