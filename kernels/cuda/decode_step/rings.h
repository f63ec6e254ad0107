// How the fused decode kernel divides shared memory among the rings of a block's warps; plan.h says
// what rings hold. Plain arithmetic.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tessera {

inline constexpr int kFusedWarps = 8;  // that compute
// Stages of a ring: the most where all rings are equally deep, and the fewest.
inline constexpr int kMaxFusedStages = 6;
inline constexpr int kLeastFusedStages = 3;

// How many units the ring of each warp holds. Where hidden_size gives the first warps of a block a
// chunk more than the others, these have deeper rings.
struct FusedRings {
  int stages = 0;
  int deep_stages = 0;  // of the first num_deep warps
  int num_deep = 0;

  constexpr int of_warp(int warp) const { return warp < num_deep ? deep_stages : stages; }
  // The first stage of a warp's ring, counted over all rings.
  constexpr int first_stage(int warp) const {
    return warp * stages + (warp < num_deep ? warp : num_deep) * (deep_stages - stages);
  }
  constexpr int num_stages() const { return first_stage(kFusedWarps); }

  constexpr bool operator==(const FusedRings&) const = default;
};

// Rings that hold num_units units at most, for inputs of num_chunks chunks. While blocks wait for
// each other, rings fill, and those of the warps with a chunk more are empty again first. So these
// warps get the units that do not make a stage for every warp, and up to `spare` stages of each
// other warp. On an H200, tokens/s with equal rings and with these: Gemma 2 9B (14 chunks) 222 and
// 228, Gemma 3 4B (10) 457 and 467, Qwen3 0.6B (4) 1,464 and 1,523, 8 sequences of Mistral Nemo
// (20) 1,334 and 1,379 (docs/experiments/decode-step.md).
constexpr FusedRings fused_rings(int64_t num_units, int num_chunks, int spare) {
  const auto total =
      static_cast<int>(std::clamp<int64_t>(num_units, 0, int64_t{kFusedWarps} * kMaxFusedStages));
  const int equal = total / kFusedWarps;
  FusedRings rings{.stages = equal, .deep_stages = equal, .num_deep = num_chunks % kFusedWarps};
  if (rings.num_deep == 0) return rings;
  const int least = std::max(kLeastFusedStages, equal - spare);
  for (int deep = equal + 1; deep <= total; ++deep) {
    const int left = (total - rings.num_deep * deep) / (kFusedWarps - rings.num_deep);
    if (left < least) break;
    rings.deep_stages = deep;
    rings.stages = std::min(left, deep);
  }
  return rings;
}

}  // namespace tessera
