// The shared memory of a block of the fused decode kernel, and the ring of one of its warps.
#pragma once

#include "kernels/cuda/attention/decode/items.cuh"
#include "kernels/cuda/decode_step/arguments.h"
#include "kernels/cuda/primitives/bulk_copy.cuh"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"

namespace tessera {

inline constexpr int kFusedConsumers = kFusedWarps * kWarpSize;
// The first kFusedWarps warps compute. Of the other four, one fills their rings, and one helps: it
// clears used words and prefetches. In a step of a single token, the third finishes what the others
// have multiplied; in a step of several tokens each computing warp finishes one token, and the
// third warp is idle. The fourth is always idle: it is there because only whole warpgroups can hand
// over registers.
enum FusedRole : uint8_t { kFillingWarp = kFusedWarps, kHelpingWarp, kEpilogueWarp, kIdleWarp };
inline constexpr int kFusedThreads = (kIdleWarp + 1) * kWarpSize;
constexpr bool has_epilogue_warp(int tokens) { return tokens == 1; }

// How many registers a thread of a computing warp takes, and how many a thread of another warp
// keeps. A multiprocessor has 65,536, and each thread starts with 168 of them; no more can be taken
// than others have given up. In a step of a single token, computing warps hold weights in theirs
// (units_ahead), and the more the block computes besides Llama's block, the more registers the warp
// needs that finishes the products. Attention of wide heads needs more than that of others.
struct FusedRegisters {
  int compute;
  int other;
};
constexpr FusedRegisters fused_registers(int tokens, int head_dim, FusedInstance instance) {
  if (tokens > 1 || head_dim > 128) return {.compute = 208, .other = 88};
  if (computes_any_block(instance)) return {.compute = 200, .other = 104};
  if (!is_llama(instance)) return {.compute = 216, .other = 72};
  return {.compute = 224, .other = 56};
}
constexpr bool hands_over_registers(int tokens, int head_dim, FusedInstance instance) {
  const FusedRegisters registers = fused_registers(tokens, head_dim, instance);
  return kFusedWarps * registers.compute +
             (kFusedThreads / kWarpSize - kFusedWarps) * registers.other <=
         kFusedThreads / kWarpSize * (65536 / kFusedThreads / 8 * 8);
}
static_assert(hands_over_registers(1, 128, FusedInstance::kLlama) &&
              hands_over_registers(1, 128, FusedInstance::kPreNorm) &&
              hands_over_registers(1, 128, FusedInstance::kAnyBlock) &&
              hands_over_registers(1, 256, FusedInstance::kAnyBlock));

// How many warps say that the block has left a layer. The warp that finishes a single token's
// products need not say so: no computing warp enters a layer before other blocks have read what
// that warp published in the layer before. They pass this on through words in global memory, which
// racecheck does not follow.
constexpr int layer_leavers(int tokens) {
  return kFusedWarps + (kForRacecheck && has_epilogue_warp(tokens) ? 1 : 0);
}

// Floats between two tokens' sums: four more than there are rows, so that the eight tokens of a
// tensor-core tile lie in different banks.
inline constexpr int kSumStride = kPassGroups * kUnitRows + 4;

// How many passes' sums may wait in shared memory to be finished.
inline constexpr int kSumBuffers = 2;

// How many passes the warp that fills the rings may announce before the others begin them.
inline constexpr int kPassSlots = 4;

struct FusedPass {
  int rows[kPassGroups];  // the first row of each group
  int num_groups;         // may be 0
  int is_last;            // of the product
};

// A block's share of attention in layers of the same window.
template <int kTokens>
struct FusedAttentionShare {
  int num_pieces;
  DecodePiece pieces[max_fused_pieces(kTokens)];
  // Where a piece's pages begin in `pages`; kMaxFusedPages: they are not there.
  int first_pages[max_fused_pieces(kTokens)];
  int pages[kMaxFusedPages];
};

// The rotations of the step's tokens in layers of the same RoPE table.
template <int kTokens, int kHeadDim>
struct FusedRotations {
  float2 of_token[kTokens][kHeadDim / 2];  // cos, sin
};

// What a token's second part of the residual stream is multiplied with before it is added to the
// first, in steps of several tokens (joins_parts).
template <int kTokens, bool kJoinsParts>
struct FusedFactors {};
template <int kTokens>
struct FusedFactors<kTokens, true> {
  uint64_t factors_known;
  float factors[kTokens];
};

template <int kTokens, int kHeadDim, FusedInstance kInstance>
struct FusedSignals : FusedFactors<kTokens, joins_parts(kTokens, kInstance)> {
  using Share = FusedAttentionShare<kTokens>;
  using Rotations = FusedRotations<kTokens, kHeadDim>;
  static_assert(sizeof(Share) <= fused_share_bytes(kTokens));
  static_assert(sizeof(Rotations) == fused_rotation_bytes(kTokens, kHeadDim));

  // Of all stages of all rings, in the order of FusedRings.
  uint64_t full[kFusedWarps * kMaxFusedStages];
  uint64_t empty[kFusedWarps * kMaxFusedStages];
  uint64_t pass_told[kPassSlots];
  uint64_t pass_known[kPassSlots];  // all warps have read the pass
  uint64_t planned;                 // pieces and pages are there
  uint64_t previous_layer_left;  // the block has left the layer before, whose words may be cleared
  uint64_t words_cleared;        // those words have been cleared
  FusedPass passes[kPassSlots];
  // Layer l's pointers are at index l % 2. They are there when words_cleared has completed in layer
  // l - 1.
  FusedLayerPointers layers[2];
  Share first_share;
  Rotations first_rotations;
  // Of each kind of layers. Those of a second kind lie in dynamic shared memory, unless both kinds
  // have the same window and so the same share. Not set for Llama's block.
  Share* shares[2];
  Rotations* rotations[2];
  int64_t page_rows[kTokens];  // the row of each new token in KV head 0 of its page
  // A pass's sums, from the warps that compute to the warps that finish it.
  uint64_t sums_full[kSumBuffers];
  uint64_t sums_free[kSumBuffers];
  static constexpr int kSumRows = kTokens * multiplied_parts(kTokens, stream_parts(kInstance));
  float sums[kSumBuffers][kFusedWarps][kSumRows][kSumStride];
};

// Tells where the rotations and shares of layers lie: those of a second kind behind the inputs.
// rings: the data of the first ring.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ void place_kinds(FusedSignals<kTokens, kHeadDim, kInstance>& signals,
                            const FusedDecodeArguments& arguments, unsigned char* rings) {
  using Rotations = FusedRotations<kTokens, kHeadDim>;
  using Share = FusedAttentionShare<kTokens>;
  unsigned char* const place =
      rings + arguments.rings.num_stages() * kUnitBytes + arguments.input_bytes;
  signals.shares[0] = &signals.first_share;
  signals.rotations[0] = &signals.first_rotations;
  signals.rotations[1] = reinterpret_cast<Rotations*>(place);
  signals.shares[1] = reinterpret_cast<Share*>(place + sizeof(Rotations));
  if (attends_by_window(kTokens) && arguments.num_windows == 1) {
    signals.shares[1] = &signals.first_share;
  }
}

// What a layer takes of these, by its kind.
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ const FusedAttentionShare<kTokens>& share_of_layer(
    const FusedDecodeArguments& arguments,
    const FusedSignals<kTokens, kHeadDim, kInstance>& signals, int layer) {
  if constexpr (!is_llama(kInstance)) {
    return *signals.shares[arguments.block.kind(layer)];
  }
  return signals.first_share;
}
template <int kTokens, int kHeadDim, FusedInstance kInstance>
__device__ const FusedRotations<kTokens, kHeadDim>& rotations_of_layer(
    const FusedDecodeArguments& arguments,
    const FusedSignals<kTokens, kHeadDim, kInstance>& signals, int layer) {
  if constexpr (!is_llama(kInstance)) {
    return *signals.rotations[arguments.block.kind(layer)];
  }
  return signals.first_rotations;
}

// The product that a warp has come to.
struct FusedPosition {
  int product = kQkv;
  int layer = 0;  // num_layers at the output head

  __device__ bool is_end() const { return product == kNumFusedProducts; }
  __device__ bool ends_in_residual() const { return product == kOProj || product == kDown; }
  __device__ void advance(int num_layers) {
    if (++product != kLmHead) return;
    if (++layer < num_layers) product = kQkv;
  }
};

// A warp's ring of units, as the warp that computes sees it.
struct UnitRing {
  // Addresses, of the first stage. The compiler shall not know how they were computed, or it would
  // compute them anew for every unit.
  uint32_t full;
  uint32_t empty;
  uint32_t data;
  uint32_t zero;  // is 0, which the compiler shall not know either
  int num_stages;
  RingPosition position;

  // Waits for the next unit and returns its address.
  __device__ uint32_t wait() const {
    mbarrier_wait(full + position.stage * kBarrierBytes, position.parity);
    __syncwarp();  // lanes may leave the wait one by one; tensor-core instructions want all
    return data + position.stage * kUnitBytes;
  }
  // Gives the unit's stage back, when all lanes have used the unit.
  __device__ void release() {
    fence_async_proxy();
    give_back(0);
  }
  // The same, when all lanes have loaded the unit into registers. loaded: a function of a word of
  // each of the lane's loads. The arrival's address depends on it, so that these loads have ended
  // before the next copy may come. A fence would wait for all that the lane has asked for, also for
  // words of other blocks that are on their way (docs/experiments/decode-step.md).
  __device__ void release_loaded(uint32_t loaded) { give_back(loaded & zero); }

 private:
  static constexpr uint32_t kBarrierBytes = sizeof(uint64_t);

  // offset: 0, to be added to the barrier's address.
  __device__ void give_back(uint32_t offset) {
    __syncwarp();
    if (arrives_for_warp(reread_lane_index())) {
      mbarrier_arrive(empty + position.stage * kBarrierBytes + offset);
    }
    position.advance(1, num_stages);
  }
};

// What the lane needs to know of a pass.
struct LanePass {
  int row;  // whose sum the lane finishes: row lane % kUnitRows of group lane / kUnitRows
  int num_groups;
  bool is_last;
};

// What a row needs besides its sum.
struct RowTerms {
  uint32_t addend;  // word of the residual stream; the bias of a row of qkv
  float factor;     // the next norm's weight; q/k norm's weight of a row of queries or keys
};

// The passes as a warp that computes walks them.
struct PassWalk {
  RingPosition position;

  template <typename Signals>
  __device__ LanePass next(Signals& signals) {
    mbarrier_wait(&signals.pass_told[position.stage], position.parity);
    const FusedPass& pass = signals.passes[position.stage];
    const int lane = reread_lane_index();
    const LanePass result{.row = pass.rows[lane / kUnitRows] + lane % kUnitRows,
                          .num_groups = pass.num_groups,
                          .is_last = pass.is_last != 0};
    __syncwarp();
    if (arrives_for_warp(lane)) mbarrier_arrive(&signals.pass_known[position.stage]);
    position.advance(1, kPassSlots);
    return result;
  }
};

// A barrier among the warps that compute.
__device__ inline void sync_fused_consumers() {
  asm volatile("bar.sync 1, %0;" ::"n"(kFusedConsumers) : "memory");
}

// The units of a piece's keys that a warp reads: first, first + kFusedWarps, and so on below end,
// counted from the beginning of the context.
struct PieceUnits {
  int first;
  int end;

  template <int kUnitTokens>
  __device__ static PieceUnits of(const DecodePiece& piece, int warp) {
    constexpr int kTileUnits = kDecodeTileTokens / kUnitTokens;
    const int context_units = (piece.context_length + kUnitTokens - 1) / kUnitTokens;
    return {.first = piece.tile_begin * kTileUnits + warp,
            .end = min(piece.tile_end * kTileUnits, context_units)};
  }
};

// A piece has the query heads of one token. Turns the piece from its sequence to that token:
// first_token becomes its number in the step, context_length what it sees, and query_length counts
// the sequence's tokens in the step up to this one.
__device__ inline void turn_to_token(DecodePiece& piece, int heads_per_kv_head) {
  const int token = piece.first_row / heads_per_kv_head;
  piece.context_length -= piece.query_length - 1 - token;
  piece.first_token += token;
  piece.query_length = token + 1;
  piece.first_row = 0;
}
// How many tokens of its sequence stand before the piece's in the step.
__device__ inline int num_earlier_tokens(const DecodePiece& piece) {
  return piece.query_length - 1;
}

// Attention's items count query groups as if they were KV heads (plan.h). Turns the piece of an
// item to the KV head whose keys it reads; first_row becomes its first query head. Instances other
// than those for any block have one group for each KV head.
template <FusedInstance kInstance>
__device__ void turn_to_kv_head(const FusedDecodeArguments& arguments, DecodePiece& piece) {
  if constexpr (computes_any_block(kInstance)) {
    piece.first_row = piece.kv_head * arguments.attention.heads_per_kv_head;
    piece.kv_head /= arguments.block.groups_per_kv_head;
  }
}
template <FusedInstance kInstance>
__device__ int first_query_head(const FusedDecodeArguments& arguments, const DecodePiece& piece) {
  if constexpr (computes_any_block(kInstance)) return piece.first_row;
  return piece.kv_head * arguments.attention.heads_per_kv_head;
}
template <FusedInstance kInstance>
__device__ int num_kv_heads(const FusedDecodeArguments& arguments) {
  if constexpr (computes_any_block(kInstance)) return arguments.block.num_kv_heads;
  return arguments.attention.num_kv_heads;
}

// The page of a sequence, counted from its first, in which a piece begins.
__device__ inline int first_page(const AttentionArguments& attention, const DecodePiece& piece) {
  return static_cast<int>(attention.page_size.divide(piece.tile_begin * kDecodeTileTokens));
}

}  // namespace tessera
