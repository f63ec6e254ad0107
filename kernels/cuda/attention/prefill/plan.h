// Which prefill attention kernel runs, and why. Plain arithmetic, no CUDA.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/tensor/check.h"

namespace tessera {

enum class PrefillKernel {
  kPortable,  // launch_attention_prefill_sm80()
  kHopper,    // launch_attention_prefill_sm90()
};

// What a block keeps in shared memory at a time.
struct PrefillTileShape {
  int tile_queries = 0;
  int tile_keys = 0;
  int stages = 0;        // tiles of keys, and as many of values, that are there or on their way
  int query_stages = 0;  // 2: the queries of the next tile come while this one is computed
};

// For head_dim 64, 96, 128 and 256. Two computing warpgroups of 64 queries may hold 232 registers
// per thread, three of them 160: with head_dim 64 that is enough for scores (64), output (32) and
// rounded scores (32), but not for a softcap besides, and the larger tile reads keys less often.
// With head_dim 256 the output alone takes 128. Tiles of 80 keys would fit there, but cut pages
// into boxes of 16 rows: 570 TFLOP/s instead of 689 (8k causal, H200). With head_dim 96 tiles of
// 160 keys are slower (494 instead of 506), those of 192, without a softcap, faster for long
// prompts (522) but slower for prompts of 2k (398 instead of 422); 192 queries x 96 keys, with
// narrower panels, took 9 % longer than 128 x 128 with these.
constexpr PrefillTileShape hopper_prefill_shape(int64_t head_dim, bool has_softcap) {
  return {.tile_queries = head_dim == 64 && !has_softcap ? 192 : 128,
          .tile_keys = head_dim == 256 ? 64 : 128,
          .stages = 2,
          .query_stages = head_dim == 256 ? 1 : 2};
}

struct PrefillPlan {
  PrefillKernel kernel = PrefillKernel::kPortable;
  PrefillTileShape shape;  // of the Hopper kernel
  std::string_view reason;
};

inline PrefillPlan plan_prefill_attention(const GpuTraits& gpu, int64_t head_dim,
                                          bool has_softcap) {
  const auto portable = [](std::string_view reason) {
    return PrefillPlan{PrefillKernel::kPortable, {}, reason};
  };
  if (gpu.choice == KernelChoice::kPortable) return portable("it was asked for");
  if (gpu.compute_capability != 90) return portable("the compute capability is not 9.0");
  if (!gpu.runs_hopper()) return portable("built without sm_90a");
  if (head_dim != 64 && head_dim != 96 && head_dim != 128 && head_dim != 256) {
    return portable("head_dim is not 64, 96, 128 or 256");
  }
  return {PrefillKernel::kHopper, hopper_prefill_shape(head_dim, has_softcap),
          "compute capability 9.0 and head_dim 64, 96, 128 or 256"};
}

// For people, one line.
inline std::string describe(const PrefillPlan& plan) {
  if (plan.kernel == PrefillKernel::kPortable) {
    return concat("mma.sync and cp.async, because ", plan.reason);
  }
  return concat("wgmma and the copy engine, tiles of ", plan.shape.tile_queries, " queries x ",
                plan.shape.tile_keys, " keys, ", plan.shape.stages, " stages, because of ",
                plan.reason);
}

}  // namespace tessera
