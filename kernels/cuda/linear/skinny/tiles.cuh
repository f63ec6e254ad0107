// What the warps of the skinny product share: sizes, shared memory, and who computes what.
//
//   tile     kRows rows of the weights: what one block, or several that share it, compute at a time
//   step     the next kStepFeatures input features of a tile; a tile's product is the sum of the
//            products of its steps
//   panel    kPanelColumns = 64 features, the width that the tensor core reads at a time
//   box      what the copy engine brings with one instruction: kBoxRows rows of a step
//   stage    a place in a ring in shared memory, for one step of a tile's weights or of the tokens
//   vector   the four sums of a lane that belong to the same eight weight rows
//   split    the number of blocks that share a tile, each with a part of its steps
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/block_spec.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

inline constexpr int kConsumerWarps = kWarpgroupSize / kWarpSize;
inline constexpr int kSkinnyTokens = static_cast<int>(kSkinnyMaxTokens);
static_assert(kSkinnyTokens == kWarpgroupRows);

// Rings are as deep as shared memory allows. How much is in flight decides how fast memory answers,
// and weights that have arrived when the kernel before ends need not be waited for. Tokens come
// from the L2 cache, which takes time too, so that their ring needs depth as well; how deep each
// should be was measured (docs/experiments/skinny-products.md). What blocks that share a tile send
// each other takes room from the weights.
inline constexpr int kMaxWeightRingBytes = 160 * 1024;
inline constexpr int kWeightAndReceivedBytes = 176 * 1024;
inline constexpr int kTokenRingBytes = 48 * 1024;
inline constexpr int kMaxTokenStages = 8;

// A step has kStepPanels panels, so 128 features or 256 bytes of each row. Memory answers best when
// these 256 bytes of a row are asked for together, and those of a few neighbouring rows next. So a
// box has few rows and both panels, rather than all rows and one panel
// (docs/experiments/skinny-products.md).
inline constexpr int kStepPanels = 2;
inline constexpr int kStepFeatures = kStepPanels * kPanelColumns;
static_assert(kStepFeatures == kSkinnyStepFeatures);
inline constexpr int kBoxRows = 8;
inline constexpr int kBoxBytes = kBoxRows * kStepPanels * kPanelRowBytes;

// Whether every row of the weights consists of whole panels. The copy engine then sees the weights
// as an array of panels and brings all panels of a box with one instruction. Otherwise it sees them
// as a plain matrix and brings each panel of a box on its own: only as a matrix does it know where
// a row ends, beyond which it has to write zeros.
constexpr bool has_whole_panels(int64_t in_features) { return in_features % kPanelColumns == 0; }

// kRows_         weight rows of a tile
// kSplit_        blocks that share a tile, each with a part of in_features
// kGated_        half of a tile's rows belong to the gate, the other half are the same rows of `up`
// kTilesAtOnce_  tiles that a block computes side by side, 1 or 2: both use one copy of the tokens;
//                if the block has an odd number of tiles, the last is computed alone
// kRotates_      the results are queries, keys and values, see SkinnyRope
// kActivation_   of the gate, if kGated_. With the code of both activations in one kernel, a step
//                of 64 sequences takes 0.1 % longer (docs/experiments/skinny-products.md)
template <typename Element_, int kRows_, int kSplit_, bool kGated_, int kTilesAtOnce_,
          bool kRotates_, Activation kActivation_>
struct SkinnyConfig {
  using Element = Element_;
  static constexpr int kRows = kRows_;
  static constexpr int kSplit = kSplit_;
  static constexpr bool kGated = kGated_;
  static constexpr int kTilesAtOnce = kTilesAtOnce_;
  static constexpr bool kRotates = kRotates_;
  static constexpr Activation kActivation = kActivation_;
  static_assert(kTilesAtOnce == 1 || (kTilesAtOnce == 2 && kSplit == 1));
  static_assert(kSplit == 1 || !kGated);
  // Of the blocks that share a tile, how many finish it: each an equal part of its rows. The others
  // send these their sums and are done.
  static constexpr int kFinishers = kSplit >= 4 && kRows == 128 ? 4 : 2;
  static_assert(!kRotates || kSplit == kFinishers);
  static_assert(kActivation == Activation::kSilu || kActivation == Activation::kGeluTanh);
  static constexpr int kParts = kGated ? 2 : 1;    // runs of neighbouring rows in a tile
  static constexpr int kOutRows = kRows / kParts;  // output features of a tile
  static constexpr int kSums = kRows / 2;          // sums of a tile that one lane has
  static constexpr int kVectors = kSums / 4;       // vectors of a tile that one lane has
  // If blocks share a tile: the vectors of a lane that one block finishes, and float4 in shared
  // memory for the sums that one other block sends it, and that all others do.
  static constexpr int kFinishedVectors = kVectors / kFinishers;
  static constexpr int kReceived = kFinishedVectors * kWarpgroupSize;
  static constexpr int kAllReceived = (kSplit - 1) * kReceived;
  static constexpr int kWeightElements = kRows * kStepFeatures;
  static constexpr int kWeightStages =
      std::min(kMaxWeightRingBytes,
               kWeightAndReceivedBytes - kAllReceived * static_cast<int>(sizeof(float4))) /
      (kWeightElements * static_cast<int>(sizeof(Element)));
};

// The barriers of a ring between the warp that copies and the warpgroup that multiplies. A full
// barrier completes when a stage's copies have arrived, an empty one when all consumer warps have
// multiplied the stage.
template <int kStages>
struct RingBarriers {
  uint64_t full[kStages];
  uint64_t empty[kStages];

  __device__ void init() {
    for (int stage = 0; stage < kStages; ++stage) {
      mbarrier_init(&full[stage], 1);
      mbarrier_init(&empty[stage], kConsumerWarps * warp_arrivals());
    }
    fence_barrier_init();
  }
};

template <typename Config>
struct SkinnyShared {
  using Element = typename Config::Element;
  // The tensor core always reads 64 rows of a panel, even if there are fewer tokens. For the last
  // stage it then reads beyond the end of this ring, where weights are; nobody looks at the sums
  // of those rows.
  alignas(1024) Element tokens[kTokenRingBytes / sizeof(Element)];
  alignas(1024) Element weights[Config::kWeightStages][Config::kWeightElements];
  RingBarriers<Config::kWeightStages> weight_barriers;
  RingBarriers<kMaxTokenStages> token_barriers;
  // If blocks share a tile and this one finishes a part of it: the other blocks' sums of that part,
  // in the order of their ranks.
  alignas(16) float4 received[std::max(Config::kAllReceived, 1)];
  uint64_t all_received;
  float scales[kSkinnyTokens];  // RMSNorm's scale of each token, if the inputs lack it
};

// RMSNorm (Zhang & Sennrich 2019) without its scale, which the product that reads it applies to its
// sums: weight * x, rounded, and sums of x^2 over kSquaresFeatures features each.
struct SkinnyNorm {
  void* values;         // Element [num_tokens, size]
  float* squares;       // [num_tokens, size / kSquaresFeatures]
  const float* weight;  // [size]
};

// Where keys and values go; `out` gets the queries. A rotation combines two elements of a head that
// are head_dim / 2 apart. For a lane to have both, the rows of a tile are the weight rows of a head
// in another order: the first eight rows of the head's first half, then the first eight of its
// second half, then the next eight of the first half, and so on.
struct SkinnyRope {
  void* keys;                // Element [num_pages, num_kv_heads, page_size, head_dim]
  void* values;              // same shape
  const int32_t* positions;  // [num_tokens]
  const int32_t* kv_slots;   // [num_tokens]
  const float* rope_table;   // [2, head_dim / 2]: inverse frequencies, amplitudes
  const float* bias;         // of each weight row, added before the rotation; nullptr: none
  int query_rows;            // weight rows of queries: num_heads * head_dim
  int kv_rows;               // weight rows of keys, and as many of values:
                             // num_kv_heads * head_dim
  int head_dim;              // a power of two
  int page_size;

  // A place is a row of the tiles, counted over all tiles. The eight places from `place` on hold
  // eight neighbouring weight rows; this is the first of them. It is beyond the last weight row if
  // and only if the place is beyond the last place.
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
  int num_steps;  // of a tile; the blocks that share the tile divide them
  int token_panel_rows;
  int num_token_stages;
  bool accumulate;
  float multiplier;
  const float* squares;  // sums of the inputs' squares as in SkinnyNorm; nullptr: the inputs have
                         // RMSNorm's scale already
  int num_squares;       // sums of squares of each token, a multiple of 4
  int in_features;
  float epsilon;
  SkinnyNorm norm;  // what to make of `out`; values nullptr: nothing
  SkinnyRope rope;  // with Config::kRotates
};

// What a block computes: num_steps steps, from begin_step on, of first_tile and of every stride-th
// tile after it.
template <typename Config>
struct SkinnyShare {
  int first_tile, stride;
  int begin_step, num_steps;
  int first_step;  // the step that the block begins with, counted from begin_step; after the last
                   // of its steps it goes on with the first
  int rank;        // of the block among those that share its tiles

  // Blocks that read the same tokens begin with different steps. If all multiprocessors asked for
  // the same cache lines at the same time, few parts of the L2 cache could answer.
  __device__ explicit SkinnyShare(const SkinnyArguments& arguments)
      : first_tile(static_cast<int>(blockIdx.x) / Config::kSplit),
        stride(static_cast<int>(gridDim.x) / Config::kSplit),
        rank(static_cast<int>(blockIdx.x) % Config::kSplit) {
    begin_step = arguments.num_steps * rank / Config::kSplit;
    num_steps = arguments.num_steps * (rank + 1) / Config::kSplit - begin_step;
    first_step = num_steps * first_tile / stride;
  }

  // Of blocks that share a tile.
  __device__ bool finishes() const {
    return Config::kSplit <= Config::kFinishers || rank < Config::kFinishers;
  }

  // How many tiles are computed at once when `tile` is the first of them: 1 or 2. The second is
  // tile + stride.
  __device__ int num_at_once(const SkinnyArguments& arguments, int tile) const {
    return Config::kTilesAtOnce == 1 || tile + stride >= arguments.num_tiles ? 1 : 2;
  }
};

}  // namespace tessera
