// How the fused decode kernel divides a step over the GPU, as host and device know it;
// decode_step/make_plan.h decides. Plain arithmetic.
//
// One thread block per multiprocessor stays for the whole step. Each of its kFusedWarps warps has a
// ring of units in shared memory, 4 KiB each, through which all weights, keys and values that the
// warp needs arrive in the order in which it needs them, across the boundaries of products and
// layers: while a product waits for the one before it, the ring fills with its weights.
//
//   unit     what one copy brings and one stage of a ring holds: kUnitRows rows x kUnitFeatures
//            features of a weight matrix, or the keys or the values of unit_tokens() tokens of one
//            KV head
//   chunk    kUnitFeatures input features of a product; warp w of a block multiplies the chunks
//            w, w + kFusedWarps, w + 2 kFusedWarps, ...
//   group    kUnitRows output rows of a product
//   item     what one block computes alone: a group, or two groups that belong together (rows of
//            both halves of a rotated head; rows of gate and the same rows of up)
//   pass     up to kPassGroups groups whose sums a warp holds in registers at the same time; a warp
//            goes through its chunks of the inputs once per pass
//   stage    a place in a warp's ring, for one unit
//   slot     a place in a ring of passes (kPassSlots). Elsewhere in tessera a KV slot is the place
//            of one token in the KV pages
//   piece    the part of an attention item that one block reads (attention/decode/items.cuh)
//   query group  up to kMaxFusedGroup query heads of a KV head. Attention has an item for each of a
//            token, and divides the work as if each had a KV head of its own; those of one KV head
//            read the same keys and values
//   share    one block's part of something that all blocks make together, for example of the sum of
//            squares of a token's residual stream
//   part     of the residual stream into a product: the stream, or what half a layer adds to it
//            (stream_parts.cuh)
//   replica  one of several equal copies of words that all blocks read
//   claim    a block takes an item that nobody has taken yet, with an atomic addition
//
// Most items of a product are dealt out to the blocks in turn. Memory does not serve all blocks
// alike: if all items were dealt out, some blocks would end a long product late by a tenth of its
// time, and all others would wait for them. So blocks claim the last few items of a long product,
// and those items of a short product that do not make a full round. Which block computes an item
// does not change its result.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "kernels/cuda/attention/decode/partition.h"
#include "kernels/cuda/decode_step/instances.h"
#include "kernels/cuda/decode_step/rings.h"
#include "kernels/cuda/primitives/fast_divisor.h"
#include "kernels/tensor/check.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {

inline constexpr int kFusedMaxTokens = 8;
inline constexpr int kUnitRows = 8;
inline constexpr int kItemRows = 2 * kUnitRows;  // of a pair of groups
inline constexpr int kUnitFeatures = 256;
inline constexpr int kUnitBytes = kUnitRows * kUnitFeatures * 2;
inline constexpr int kPassGroups = 4;
// How many chunks of a product's inputs a warp can keep in shared memory: it notes in one bit per
// chunk and token whether they have arrived. The first is for a single token, the second for steps
// of several tokens.
inline constexpr int kMaxInputChunks = 32;
inline constexpr int kMaxKeptChunks = kMaxInputChunks / kFusedMaxTokens;
// How many shares make up the sum of squares of a token's residual stream: one for the rows that
// were dealt out to each block, then one for each item that is claimed. So the sum has the same
// terms whichever block claims an item.
inline constexpr int kMaxFusedBlocks = 160;
inline constexpr int kSquareShares = 2 * kMaxFusedBlocks;
// The most pieces of attention that a block may have in a step of several tokens
// (most_fused_pieces()).
inline constexpr int kMaxFusedPieces = 64;
// In a step of a single token all attention items are equally long. Either each item has blocks of
// its own, or there are more than half as many items as blocks; then the tiles that one block reads
// (attention/decode/partition.h) belong to six items at most.
constexpr int max_fused_pieces(int tokens) { return tokens == 1 ? 8 : kMaxFusedPieces; }
// How many units of a ring may be on their way at a time in a model of small layers. Words that
// blocks exchange wait behind all units that are on their way to all blocks. Small layers, half of
// whose time is such exchanges, become faster when less is on its way; large layers become slower,
// since memory serves the rings unevenly. So do small layers where some warps of a block have more
// chunks of hidden_size than others, since their rings alone are then filled
// (docs/experiments/decode-step.md).
inline constexpr int kFewUnderWay = 2;
// A layer is small when its weights have fewer bytes than this.
inline constexpr int64_t kSmallLayerBytes = int64_t{256} << 20;
// In a step of a single token no piece of an attention item has fewer tiles than this: each warp of
// a block then has a few keys, and there are fewer pieces to merge. A tile of wide heads takes
// twice as long.
constexpr int least_fused_tiles(int64_t head_dim) { return head_dim <= 128 ? 4 : 2; }
// The most heads of a query group: the rows of half a tensor-core tile.
inline constexpr int kMaxFusedGroup = 8;
// In how many groups of equal size the query heads of a KV head are.
constexpr int query_groups(int64_t heads_per_kv_head) {
  int groups = 1;
  while (heads_per_kv_head % groups != 0 || heads_per_kv_head / groups > kMaxFusedGroup) ++groups;
  return groups;
}
// How many numbers of KV pages a block keeps in shared memory, where the warp that fills the rings
// finds them without waiting. If its pieces have more pages, it looks the rest up in the block
// tables.
inline constexpr int kMaxFusedPages = 256;

// The tokens whose keys, or whose values, of one KV head make up a unit, a power of two;
// element_bytes is 1 for float8_e4m3. Units of heads of 96 fill three quarters of a stage.
constexpr int unit_tokens(int head_dim, int element_bytes = 2) {
  return static_cast<int>(
      std::bit_floor(static_cast<unsigned>(kUnitBytes / (element_bytes * head_dim))));
}
constexpr int kv_unit_bytes(int head_dim, int element_bytes = 2) {
  return unit_tokens(head_dim, element_bytes) * head_dim * element_bytes;
}

enum FusedProductIndex : uint8_t { kQkv, kOProj, kGateUp, kDown, kLmHead, kNumFusedProducts };

// A matrix product as the kernel walks it.
struct FusedProduct {
  int rows;                                  // output features
  int features;                              // input features
  int num_items;                             // groups or pairs of groups
  int is_paired;                             // 1: items are pairs, 0: groups
  FastDivisor block_items = FastDivisor(2);  // items per block of rows
  int block_rows;                            // rows from one block of rows to the next
  int pair_distance;                         // rows between the groups of a pair
  int static_items;  // items dealt out to each block; the others are claimed
  int claims_many;   // 1: a block claims until none is left, 0: at most one

  constexpr int num_chunks() const { return features / kUnitFeatures; }
  constexpr int num_claimed(int num_blocks) const { return num_items - static_items * num_blocks; }
  // Whether warps keep the inputs of several tokens in shared memory from pass to pass. Where a
  // warp has one chunk at most and one or two passes, it is faster to ask for other blocks' words
  // again: 8 sequences of Qwen3 0.6B 9,150 and 9,498 tokens/s. A block that may have no item keeps
  // them all the same: that is how it waits for all words.
  constexpr bool keeps_inputs(int num_blocks) const {
    return static_items == 0 || num_chunks() > kFusedWarps ||
           num_items << is_paired > 2 * kPassGroups * num_blocks;
  }
  // The first row of an item's group; half: 0 or 1.
  constexpr int row(int item, int half) const {
    const auto block = static_cast<int>(block_items.divide(static_cast<uint32_t>(item)));
    const int in_block = item - block * static_cast<int>(block_items.divisor());
    return block * block_rows + in_block * kUnitRows + half * pair_distance;
  }
};

// How many items per block of a long product are claimed, besides those that do not make a full
// round (docs/experiments/decode-step.md).
inline constexpr int kClaimedItems = 1;

// Words that all blocks read are written this many times, and each block reads one of these
// replicas: a slice of the L2 cache answers for one line at a time, and while blocks wait, all of
// them ask for the same lines. A step of several tokens has more words to write, and replicas cost
// more than they bring (docs/experiments/decode-step.md).
constexpr int exchange_replicas(int tokens) { return tokens == 1 ? 8 : 1; }

// The words of a share of squares where the stream has two parts.
inline constexpr int kStreamSums = 4;

// Rounds in which the warps of a block take the chunks of a product's inputs.
constexpr int chunk_rounds(int num_chunks) { return (num_chunks + kFusedWarps - 1) / kFusedWarps; }
// The place in shared memory, counted in chunks, where a warp keeps its i-th chunk of a part of a
// product's inputs. A place is the same warp's in every product, because warps do not wait for each
// other between products: one may bring the next inputs while another still reads its last.
constexpr int kept_chunk(int warp, int i, int part, int num_chunks) {
  return warp + (i + part * chunk_rounds(num_chunks)) * kFusedWarps;
}

// Where the blocks leave 32-bit words for each other; see decode_step/exchange.cuh. Offsets are in
// words, from the start of a copy. "pairs" are two bfloat16 in a word. "replicated" means that
// exchange_replicas() of this lie one after the other.
struct FusedExchangeLayout {
  int residual_in;    // float [num_tokens][hidden_size], before the layer
  int residual_mid;   // same, after attention
  int weighted_in;    // replicated pairs [num_tokens][stream_parts][hidden_size / 2], residual_in
                      // (or its parts) times the norm's weight
  int weighted_mid;   // same of residual_mid
  int squares_in;     // replicated float [num_tokens][kSquareShares], of residual_in; where that
                      // has two parts, [num_tokens][kSquareShares][kStreamSums]
  int squares_mid;    // same of residual_mid
  int qkv;            // float [num_tokens][qkv rows], rotated; without the norm's scale where
                      // attention_applies_scale(), and without q/k norm's
  int qk_squares;     // float [num_tokens][qkv rows / 16], of each item of queries and keys; only
                      // with q/k norm
  int attention_out;  // replicated pairs [num_tokens][num_heads * head_dim / 2]
  int hidden;         // replicated pairs [num_tokens][intermediate_size / 2]
  int size;           // of all these
};

struct FusedDecodePlan {
  std::string problem;  // for people: why the kernel cannot run; empty when it can
  std::array<FusedProduct, kNumFusedProducts> products{};
  FusedBlock block{};
  bool has_fp8_pages = false;
  int num_kinds = 1;    // of layers
  int num_windows = 1;  // of these kinds
  int stream_parts = 1;
  int num_blocks = 0;
  int group_heads = 0;  // of a query group
  int num_groups = 0;   // of query heads
  int max_tokens = 0;
  bool has_small_layers = false;
  int most_under_way = 0;  // units of a ring that are asked for and not there yet
  // Whether a sequence may have several tokens in a step.
  bool takes_drafts = true;
  // Tokens of context that a step may read again: every token reads its context by itself, also
  // those of one sequence.
  int64_t most_reread = 0;

  bool runs() const { return problem.empty(); }
};

// Bytes of keys and values of a layer that a step may read again. Steps that would read more run
// one operation after the other, in which decode attention reads a context once for all tokens of
// its sequence; that costs as much time as it takes to read about this much
// (docs/experiments/prompt-lookup.md).
inline constexpr int64_t kRereadBytes = int64_t{128} << 20;

// What the host knows of a step.
struct FusedStepSize {
  int64_t num_tokens = 0;
  int64_t num_sequences = 0;
  int64_t num_decodes = 0;  // of these sequences
  int64_t max_context_length = 0;
};

// How many pieces of attention a block has at most in a step of several tokens. Every item that
// begins in its share takes up two tiles of it or more (attention/decode/partition.h); one may have
// begun before.
constexpr int64_t most_fused_pieces(const FusedDecodePlan& plan, const FusedStepSize& step) {
  const int64_t num_items = step.num_tokens * plan.num_groups;
  const int64_t tiles = ceil_divide<int64_t>(step.max_context_length, kDecodeTileTokens);
  const int64_t share =
      ceil_divide<int64_t>(num_items * (tiles + kDecodeItemOverhead), plan.num_blocks);
  // Shares are not smaller where all items are short (packed_decode_share()).
  const int64_t least = kMaxWholeTiles + kDecodeItemOverhead;
  return std::min(num_items, ceil_divide<int64_t>(std::max(share, least), 2) + 1);
}

// Whether the kernel computes the step, and faster than the operations one after the other.
constexpr bool takes_step(const FusedDecodePlan& plan, const FusedStepSize& step) {
  return step.num_tokens >= 1 && step.num_tokens <= plan.max_tokens &&
         step.num_decodes == step.num_sequences && step.num_tokens >= step.num_sequences &&
         (plan.takes_drafts || step.num_tokens == step.num_sequences) &&
         (step.num_tokens == 1 || most_fused_pieces(plan, step) <= kMaxFusedPieces) &&
         (step.num_tokens - step.num_sequences) * step.max_context_length <= plan.most_reread;
}

constexpr FusedExchangeLayout fused_exchange_layout(const FusedDecodePlan& plan, int num_tokens) {
  const auto& products = plan.products;
  const int replicas = exchange_replicas(num_tokens);
  const int parts = plan.stream_parts;
  const int square_words = kSquareShares * (parts > 1 ? kStreamSums : 1);
  FusedExchangeLayout layout{};
  int end = 0;
  const auto take = [&](int words) {
    const int begin = end;
    end += num_tokens * words;
    return begin;
  };
  layout.residual_in = take(products[kQkv].features);
  layout.residual_mid = take(products[kQkv].features);
  layout.weighted_in = take(replicas * parts * products[kQkv].features / 2);
  layout.weighted_mid = take(replicas * parts * products[kQkv].features / 2);
  layout.squares_in = take(replicas * square_words);
  layout.squares_mid = take(replicas * square_words);
  layout.qkv = take(products[kQkv].rows);
  layout.qk_squares = take(plan.block.has_qk_norm != 0 ? products[kQkv].rows / kItemRows : 0);
  layout.attention_out = take(replicas * products[kOProj].features / 2);
  layout.hidden = take(replicas * products[kDown].features / 2);
  layout.size = end;
  return layout;
}

// Words of the counters of claimed items, one counter per product of the step, each in a memory
// sector of its own.
inline constexpr int kClaimStride = 8;
constexpr int fused_claim_words(int num_layers) {
  return (num_layers * kLmHead + 1) * kClaimStride;
}

// Words that a block's partial result of attention takes: outputs, then log-sums.
constexpr int fused_partial_words(int group_heads, int head_dim) {
  return group_heads * head_dim + (group_heads + 3) / 4 * 4;
}

// Whether kinds of layers with the same window have one share of attention. In a step of a single
// token there is room for two, and the instance for blocks without norms of what the halves add has
// no register to tell them apart.
constexpr bool attends_by_window(int tokens) { return tokens > 1; }
// Shared memory for a block's share of attention in layers of one window (pieces and pages), and
// for the rotations of one RoPE table.
constexpr int64_t fused_share_bytes(int tokens) {
  constexpr int64_t kPieceBytes = 64;
  return max_fused_pieces(tokens) * kPieceBytes + kMaxFusedPages * 4 + 16;
}
constexpr int64_t fused_rotation_bytes(int tokens, int64_t head_dim) {
  return tokens * head_dim * int64_t{sizeof(float)};
}

// Static shared memory: barriers, sums, arguments, the share and rotations of the first kind of
// layers. Instances other than Llama's over bfloat16 pages have more arguments
// (fused_argument_bytes); where the stream has two parts, there are a single token's sums of the
// second one, or several tokens' factors of it.
constexpr int64_t fused_static_bytes(FusedInstance instance, int tokens, int64_t head_dim) {
  const int64_t of_llama = tokens == 1 ? 47 * 128 : 29 * 1024;
  const int64_t of_wide_heads = 4 * tokens * std::max<int64_t>(head_dim - 128, 0);
  const int64_t of_parts = stream_parts(instance) > 1 ? (tokens == 1 ? 18 : 1) * 128 : 0;
  return instance == FusedInstance::kLlama ? of_llama
                                           : of_llama + of_wide_heads + of_parts + 3 * 128;
}

// How many stages of its ring a warp can spare for one with a chunk of hidden_size more. Large
// layers got slower by any.
constexpr int spare_stages(const FusedDecodePlan& plan, int tokens) {
  if (!plan.has_small_layers) return 0;
  return tokens == 1 ? 2 : 1;
}

// Dynamic shared memory of the kernel for steps of up to `tokens`: first the rings; then the input
// features of a product, in whose place attention's warps leave results for each other; then the
// rotations and the share of attention of the second kind of layers, if they are not the first's.
struct FusedSharedMemory {
  FusedRings rings;
  int input_stride;  // bytes from one token's input features to the next one's
  int input_bytes;
  int total_bytes;
};

inline FusedSharedMemory fused_shared_memory(const FusedDecodePlan& plan, int tokens,
                                             int64_t head_dim, int64_t shared_bytes) {
  constexpr int64_t kAlignmentBytes = 1024;  // of the rings, for the swizzle
  const auto& products = plan.products;
  // The features of a single token all go through shared memory; those of several tokens only in
  // products of several passes.
  const int features =
      tokens == 1
          ? std::max({products[kQkv].features, products[kOProj].features, products[kDown].features})
          : products[kQkv].features;
  const int parts = multiplied_parts(tokens, plan.stream_parts);
  const int chunks_of_parts =
      parts > 1 ? parts * chunk_rounds(products[kQkv].num_chunks()) * kFusedWarps : 0;
  FusedSharedMemory memory{};
  // 64 bytes more than a multiple of 128, so that two tokens, which are read at a time, lie in
  // different banks.
  memory.input_stride = std::max(features, chunks_of_parts * kUnitFeatures) * 2 + 64;
  const int64_t staging = kFusedWarps * int64_t{plan.group_heads} * (head_dim + 8 + 2) * 4;
  memory.input_bytes = static_cast<int>(
      ceil_divide(std::max(int64_t{memory.input_stride} * tokens, staging), int64_t{128}) * 128);
  const int num_shares = attends_by_window(tokens) ? plan.num_windows : plan.num_kinds;
  const int64_t kind_bytes = (plan.num_kinds - 1) * fused_rotation_bytes(tokens, head_dim) +
                             (num_shares - 1) * fused_share_bytes(tokens);
  const FusedInstance instance = fused_instance(plan.block, plan.has_fp8_pages, head_dim);
  const int64_t left = shared_bytes - kAlignmentBytes -
                       fused_static_bytes(instance, tokens, head_dim) - memory.input_bytes -
                       kind_bytes;
  memory.rings =
      fused_rings(left / kUnitBytes, products[kQkv].num_chunks(), spare_stages(plan, tokens));
  memory.total_bytes = static_cast<int>(kAlignmentBytes + kind_bytes) + memory.input_bytes +
                       memory.rings.num_stages() * kUnitBytes;
  return memory;
}

}  // namespace tessera
