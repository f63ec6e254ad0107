// Which kernel computes a matrix product, and how. Plain arithmetic, no CUDA.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/cuda/device/gpu_traits.h"

namespace tessera {

enum class LinearKernel : uint8_t {
  kGemv,    // few tokens: reads the weights once at memory speed
  kSkinny,  // the same for more tokens, on Hopper
  kCublas,  // a tiled matrix product
};

constexpr std::string_view to_string(LinearKernel kernel) {
  switch (kernel) {
    case LinearKernel::kGemv:
      return "gemv";
    case LinearKernel::kSkinny:
      return "skinny";
    case LinearKernel::kCublas:
      return "cublas";
  }
  return "";
}

// The tokens that one tensor-core tile of the GEMV holds; more would read the weights again.
inline constexpr int64_t kGemvMaxTokens = 8;
// The same for the skinny kernel.
inline constexpr int64_t kSkinnyMaxTokens = 64;

struct LinearShape {
  int64_t num_tokens;
  int64_t out_features;
  int64_t in_features;
};

// The skinny kernel keeps the sum of a token's squares in parts, each over this many features.
inline constexpr int kSquaresFeatures = 32;

// How the skinny kernel divides a product: into tiles of tile_rows rows of weights, each shared by
// `split` blocks, which divide in_features. A block that has several tiles computes tiles_at_once
// of them side by side and reads the tokens once for these.
struct SkinnyPlan {
  int tile_rows = 0;
  int split = 1;
  int tiles_at_once = 1;

  constexpr bool operator==(const SkinnyPlan&) const = default;
};

// The plans that are built.
inline constexpr SkinnyPlan kSkinnyPlans[] = {{64, 1},  {64, 2}, {64, 4},  {128, 4},   {128, 5},
                                              {128, 6}, {96, 2}, {128, 1}, {128, 1, 2}};
// The same for tiles that hold rows of gate and of up together.
inline constexpr SkinnyPlan kGatedSkinnyPlans[] = {{128, 1},   {112, 1},    {96, 1},     {80, 1},
                                                   {64, 1},    {128, 1, 2}, {112, 1, 2}, {96, 1, 2},
                                                   {80, 1, 2}, {64, 1, 2}};
// The same with rotary positions and the append to KV pages, for heads of 64 or 128.
inline constexpr SkinnyPlan kRopeSkinnyPlans[] = {{64, 2}, {96, 2}};
inline constexpr int kSkinnyStepFeatures = 128;  // of the steps that blocks divide

struct LinearPlan {
  LinearKernel kernel;
  SkinnyPlan skinny = {};
};

// The fewest tokens with which a block that has several tiles computes two at a time. With 64
// tokens, tiles of 112 rows of the 28672 x 4096 weights of an 8B model read 134 MB of tokens from
// L2 besides 235 MB of weights, pairs of tiles 69 MB: on an H200 61.9 and 58.3 us, with 32 tokens
// 56.8 and 56.4, with 24 55.9 and 56.2. Results do not depend on it.
inline constexpr int64_t kTilesAtOnceTokens = 33;  // least
constexpr int tiles_at_once(int64_t num_tokens, int64_t num_tiles, int num_multiprocessors) {
  return num_tokens >= kTilesAtOnceTokens && num_tiles > num_multiprocessors ? 2 : 1;
}

// How many clusters of so many blocks surely run at once. A cluster lies within one of the parts
// that a GPU consists of, which have up to 18 multiprocessors each, and some are left over. More
// clusters than these would wait for others to end: on H200s that run 30 of 4, 22 of 5, 17 of 6 and
// 15 of 7, a step of 64 sequences of SmolLM3 3B, whose tiles are 16, takes 11 % longer with
// clusters of 7 than with clusters of 6 (docs/experiments/skinny-products.md).
constexpr int clusters_at_once(int num_multiprocessors, int blocks) {
  switch (blocks) {
    case 1:
    case 2:
      return num_multiprocessors / blocks;
    case 4:
      return num_multiprocessors * 7 / 32;
    case 5:
      return num_multiprocessors * 5 / 32;
    default:
      return num_multiprocessors / 8;
  }
}

// Tiles that blocks share: as many blocks as run at once, and where that leaves a choice the larger
// tile, since every tile reads all tokens again. The norm that follows needs whole tiles, and
// cannot follow tiles of 96 rows: these are for more rows than all others have room for. Where rows
// are too many to share tiles, a tile for each block, or else the largest. On an H200 with 64
// tokens, microseconds: 6144 x 4096 in tiles of 96 shared by 2 16.0, of 64 17.6; 4096 x 14336 in
// tiles of 64 shared by 2 33.3, of 128 shared by 2 34.1; 28672 x 4096 in tiles of 128 61.8, of
// 64 69.1, of 224 (one each) 62.8. most_split: blocks that may share a tile.
constexpr SkinnyPlan plan_skinny(const LinearShape& shape, int num_multiprocessors,
                                 int most_split = 6) {
  const auto num_tiles = [&](int64_t rows) { return (shape.out_features + rows - 1) / rows; };
  SkinnyPlan best;
  int64_t most_blocks = 0;
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    const int64_t tiles = num_tiles(plan.tile_rows);
    if (plan.split == 1 || plan.split > most_split ||
        shape.in_features < plan.split * kSkinnyStepFeatures ||
        tiles > clusters_at_once(num_multiprocessors, plan.split) ||
        (plan.tile_rows == 128 && shape.out_features % 128 != 0) ||
        (plan.tile_rows == 96 && most_blocks > 0)) {
      continue;
    }
    const int64_t blocks = tiles * plan.split;
    if (blocks > most_blocks || (blocks == most_blocks && plan.tile_rows > best.tile_rows)) {
      best = plan;
      most_blocks = blocks;
    }
  }
  if (most_blocks > 0) return best;
  if (num_tiles(64) <= num_multiprocessors) return {.tile_rows = 64, .split = 1};
  return {.tile_rows = 128,
          .split = 1,
          .tiles_at_once = tiles_at_once(shape.num_tokens, num_tiles(128), num_multiprocessors)};
}

// The tiles with which the busiest block has the fewest rows, and of these the largest. Streaming
// the 28672 x 4096 weights of an 8B model takes 53.9 us in tiles of 112, two for each of 128
// blocks, and 57.9 in tiles of 128, of which some blocks have one and some two (H200).
constexpr SkinnyPlan plan_gated_skinny(int64_t num_tokens, int64_t out_features,
                                       int num_multiprocessors) {
  const auto num_tiles = [&](const SkinnyPlan& plan) {
    return (2 * out_features + plan.tile_rows - 1) / plan.tile_rows;
  };
  const auto busiest_rows = [&](const SkinnyPlan& plan) {
    return (num_tiles(plan) + num_multiprocessors - 1) / num_multiprocessors * plan.tile_rows;
  };
  SkinnyPlan best = kGatedSkinnyPlans[0];
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) {
    if (busiest_rows(plan) < busiest_rows(best)) best = plan;
  }
  best.tiles_at_once = tiles_at_once(num_tokens, num_tiles(best), num_multiprocessors);
  return best;
}

// Decoding with an 8B model on an H200, tokens/s of the skinny kernel and of cuBLAS: 16 sequences
// 3,157 and 2,890, 32 5,534 and 5,090, 64 8,774 and 8,479. With 1, 4 and 8 tokens the GEMV takes 2,
// 5 and 6 % less time for all products of a step than the skinny kernel.
constexpr LinearPlan plan_linear(const LinearShape& shape, const GpuTraits& gpu) {
  if (gpu.is_batch_invariant()) return {.kernel = LinearKernel::kCublas};
  if (shape.num_tokens <= kGemvMaxTokens) return {.kernel = LinearKernel::kGemv};
  if (shape.num_tokens <= kSkinnyMaxTokens && gpu.runs_hopper()) {
    return {.kernel = LinearKernel::kSkinny, .skinny = plan_skinny(shape, gpu.num_multiprocessors)};
  }
  return {.kernel = LinearKernel::kCublas};
}

// How many parts a product leaves that is added to the residual stream before a norm, each the sum
// over an equal share of in_features: kResidualParts where cuBLAS computes it for up to
// kResidualPartsTokens tokens; the norm then adds them to the stream, which it reads anyway. Else
// 1, and the product adds itself. So few tokens have too few tiles for all multiprocessors, and
// cuBLAS either leaves some idle or adds up parts in a kernel of its own. On an H200, microseconds
// of cuBLAS as it chooses and of two parts: 4096 x 14336 with 96 tokens 38.5 and 32.0, 128 38.1 and
// 33.5, 192 46.6 and 37.1, 320 57.4 and 54.7; 4096 x 4096 17.9 and 11.5, 14.0 and 11.9, 17.3 and
// 12.8, 19.1 and 18.9 (docs/experiments/batches.md).
inline constexpr int kResidualParts = 2;
inline constexpr int64_t kPartFeatures = 64;  // a part has a multiple of these
inline constexpr int64_t kResidualPartsTokens = 240;
// Memory for the parts.
inline constexpr int64_t kResidualPartsBytes = int64_t{24} << 20;
constexpr int residual_parts(const LinearShape& shape, const GpuTraits& gpu) {
  const int64_t bytes = kResidualParts * shape.num_tokens * shape.out_features * 4;
  const bool is_divided =
      plan_linear(shape, gpu).kernel == LinearKernel::kCublas && gpu.runs_hopper() &&
      !gpu.is_batch_invariant() && shape.num_tokens <= kResidualPartsTokens &&
      shape.in_features % (kResidualParts * kPartFeatures) == 0 && bytes <= kResidualPartsBytes;
  return is_divided ? kResidualParts : 1;
}

// The plan of a product of queries, keys and values that rotates and stores them itself; it is
// built for tiles that two blocks share at most.
constexpr LinearPlan rotating_plan(LinearPlan plan, const LinearShape& shape,
                                   int num_multiprocessors) {
  if (plan.skinny.split > 2) plan.skinny = plan_skinny(shape, num_multiprocessors, 2);
  return plan;
}

// Whether the product of queries, keys and values rotates and stores them itself.
constexpr bool fuses_rope(const LinearPlan& plan, int64_t head_dim) {
  if (plan.kernel != LinearKernel::kSkinny || (head_dim != 64 && head_dim != 128)) return false;
  for (const SkinnyPlan& rope_plan : kRopeSkinnyPlans) {
    if (plan.skinny == rope_plan) return true;
  }
  return false;
}

// Whether RMSNorm's rows go from product to product without their scale. They do if the skinny
// kernel computes products of so many tokens and every block has a multiple of kSquaresFeatures
// rows.
constexpr bool defers_norm_scale(int64_t num_tokens, int64_t hidden_size, const GpuTraits& gpu) {
  // With more input features the plan is the same, or has tiles of 64 or 128 rows.
  const LinearPlan plan = plan_linear({.num_tokens = num_tokens,
                                       .out_features = hidden_size,
                                       .in_features = 2 * kSkinnyStepFeatures},
                                      gpu);
  return plan.kernel == LinearKernel::kSkinny && plan.skinny.tile_rows != 96 &&
         hidden_size % 128 == 0;
}

}  // namespace tessera
