// What the warps of the skinny product share: sizes, shared memory, and who computes what.
#pragma once

#include <cstdint>

#include "kernels/cuda/linear/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

inline constexpr int kConsumerWarps = kWarpgroupSize / kWarpSize;
inline constexpr int kSkinnyTokens = static_cast<int>(kSkinnyMaxTokens);
static_assert(kSkinnyTokens == kWarpgroupRows);

// Rings as deep as shared memory allows: what is in flight decides how fast memory answers, and
// what is there when the kernel before ends need not be waited for. Tokens come from L2, but not at
// once: with 48 KiB the down projection of an 8B model took 39 us before L2 was told what to keep
// (evict_first_policy) and 31.6 afterwards; with 64 KiB 33 before (H200, 64 tokens).
inline constexpr int kWeightRingBytes = 160 * 1024;
inline constexpr int kTokenRingBytes = 48 * 1024;
inline constexpr int kMaxTokenStages = 8;

// A step of a tile is kStepPanels * 64 features. Memory answers best when the 256 bytes that these
// are of a row are asked for together, and those of a few rows before the next: boxes of all rows
// and 64 features each took 1.4 % longer for the products of an 8B layer with 16 tokens, 2.3 with
// 64 (H200, together with stages kept until the next step's products had begun).
inline constexpr int kStepPanels = 2;
inline constexpr int kStepFeatures = kStepPanels * kPanelColumns;
inline constexpr int kBoxRows = 8;
inline constexpr int kBoxBytes = kBoxRows * kStepPanels * kPanelRowBytes;

// Whether the copy engine can be told of weights as panels, of which it then brings all of a step
// at once. Other weights come as a plain matrix, a box for each panel: beyond the end of a row
// there are zeros only in that.
constexpr bool has_whole_panels(int64_t in_features) { return in_features % kPanelColumns == 0; }

inline constexpr int kPairBlocks = 2;  // that may share a tile

// kRows_: weight rows of a tile. kSplit_: blocks that share a tile's in_features, 1 or kPairBlocks.
// kGated_: half of the rows are of the gate, the other half the same of `up`. kTilesAtOnce_: of a
// block's tiles, 1 or 2, for which the tokens of a step come once; of an odd number the last is
// alone. kRotates_: results are queries, keys and values, see SkinnyRope.
template <typename Element_, int kRows_, int kSplit_, bool kGated_, int kTilesAtOnce_,
          bool kRotates_>
struct SkinnyConfig {
  using Element = Element_;
  static constexpr int kRows = kRows_;
  static constexpr int kSplit = kSplit_;
  static constexpr bool kGated = kGated_;
  static constexpr int kTilesAtOnce = kTilesAtOnce_;
  static constexpr bool kRotates = kRotates_;
  static_assert(kTilesAtOnce == 1 || (kTilesAtOnce == 2 && kSplit == 1));
  static_assert(!kRotates || (kSplit > 1 && !kGated));
  static constexpr int kParts = kGated ? 2 : 1;    // of neighbouring rows
  static constexpr int kOutRows = kRows / kParts;  // features of the result
  static constexpr int kSums = kRows / 2;          // a lane's, of a tile
  static constexpr int kVectors = kSums / 4;       // of four sums, of 8 weight rows
  static constexpr int kWeightElements = kRows * kStepFeatures;
  static constexpr int kWeightStages = kWeightRingBytes / (kWeightElements * sizeof(Element));
};

// A ring of boxes between the warp that copies them and the warpgroup that multiplies.
template <int kStages>
struct RingBarriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];

  __device__ void init() {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], kConsumerWarps);
    }
    fence_barrier_init();
  }
};

template <typename Config>
struct SkinnyShared {
  using Element = typename Config::Element;
  // The tensor core reads 64 rows of a panel, also where fewer are tokens: beyond the ring's end
  // what it reads are weights, and nobody looks at what comes of them.
  alignas(1024) Element tokens[kTokenRingBytes / sizeof(Element)];
  alignas(1024) Element weights[Config::kWeightStages][Config::kWeightElements];
  RingBarriers<Config::kWeightStages> weight_barriers;
  RingBarriers<kMaxTokenStages> token_barriers;
  // Of a tile that two blocks share: the other's sums of this block's half.
  alignas(16) float4
      received[Config::kSplit == kPairBlocks ? Config::kVectors / kPairBlocks * kWarpgroupSize : 1];
  uint64_t all_received;
  float scales[kSkinnyTokens];  // RMSNorm's, of inputs that lack it
};

// RMSNorm (Zhang & Sennrich 2019) without its scale, which the product that reads it applies to its
// sums: weight * x, rounded, and sums of x^2 over kSquaresFeatures features each.
struct SkinnyNorm {
  void* values;         // Element [num_tokens, size]
  float* squares;       // [num_tokens, size / kSquaresFeatures]
  const float* weight;  // [size]
};

// Where keys and values go; `out` has the queries. Rotation pairs the elements of a head that are
// head_dim / 2 apart. For a lane to have both, tiles take the weights of a head in another order:
// eight rows of its first half, the eight head_dim / 2 further, the next eight of the first half.
struct SkinnyRope {
  void* keys;                        // Element [num_pages, num_kv_heads, page_size, head_dim]
  void* values;                      // same shape
  const int32_t* positions;          // [num_tokens]
  const int32_t* kv_slots;           // [num_tokens]
  const float* inverse_frequencies;  // [head_dim / 2]
  int query_rows;                    // of weights: num_heads * head_dim
  int kv_rows;                       // of keys, and as many of values: num_kv_heads * head_dim
  int head_dim;                      // a power of two
  int page_size;

  // The first of the eight rows of weights that tiles have as rows from `place` on, counted over
  // all tiles. Beyond the last row if and only if the place is.
  __device__ int row(int place) const {
    const int in_head = place & (head_dim - 1);
    const int half = in_head & kBoxRows ? head_dim / 2 : 0;
    return place - in_head + in_head / (2 * kBoxRows) * kBoxRows + half;
  }
};

struct SkinnyArguments {
  void* out;
  int64_t out_features;
  int num_tokens;
  int num_tiles;
  int num_steps;  // of a tile, divided among the blocks of a cluster
  int token_panel_rows;
  int num_token_stages;
  bool accumulate;
  const float* squares;  // as in SkinnyNorm, of the inputs; nullptr: they are complete
  int num_squares;       // of a token, a multiple of 4
  int in_features;
  float epsilon;
  SkinnyNorm norm;  // what to make of `out`; values nullptr: nothing
  SkinnyRope rope;  // with Config::kRotates
};

// What a block computes: these steps of every `stride`-th tile.
template <typename Config>
struct SkinnyShare {
  int first_tile, stride;
  int begin_step, num_steps;
  int first_step;  // of those, counted from begin_step: after the last comes the first of all
  int rank;        // in the cluster

  // Blocks that read the same tokens begin with different ones: of lines that all multiprocessors
  // ask for at the same time, L2 has few places to answer from.
  __device__ explicit SkinnyShare(const SkinnyArguments& arguments)
      : first_tile(static_cast<int>(blockIdx.x) / Config::kSplit),
        stride(static_cast<int>(gridDim.x) / Config::kSplit),
        rank(static_cast<int>(blockIdx.x) % Config::kSplit) {
    begin_step = arguments.num_steps * rank / Config::kSplit;
    num_steps = arguments.num_steps * (rank + 1) / Config::kSplit - begin_step;
    first_step = num_steps * first_tile / stride;
  }

  // How many tiles are computed at once, of which this is the first; the other is a stride further.
  __device__ int num_at_once(const SkinnyArguments& arguments, int tile) const {
    return Config::kTilesAtOnce == 1 || tile + stride >= arguments.num_tiles ? 1 : 2;
  }
};

}  // namespace tessera
