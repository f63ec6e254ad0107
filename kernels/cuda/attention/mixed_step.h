// Steps that have decodes and prompts: whether their attention runs side by side, and how the
// multiprocessors are divided. Plain arithmetic, no CUDA.
//
// Decodes read keys and values as fast as memory gives them, which fewer multiprocessors can do as
// well. Prompts of a few hundred tokens leave memory and most multiprocessors idle: each of their
// tiles is a chain of a few copies and products. So decode attention leaves some multiprocessors
// out, and prefill attention, which is launched behind it, begins on these at once instead of
// waiting for its end. POD-Attention (Kamath et al. 2025) does the same in one kernel.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/prefill/plan.h"
#include "kernels/cuda/device/gpu_traits.h"

namespace tessera {

// What an H200 takes, nanoseconds. Estimates suffice: what prefill attention has left when the
// decodes are done, all multiprocessors share.
inline constexpr double kDecodeByteTime = 0.00026;    // a byte of keys and values: 3.9 TB/s
inline constexpr double kLaunchTime = 4000;           // from the decodes' end to the first tiles
inline constexpr double kPrefillTileTime = 3000;      // a tile's queries, first keys and results
inline constexpr double kPrefillScoreTime = 0.00081;  // a query, a key and an element, in a tile

// The multiprocessors that decode attention needs in order to read as fast as all do, roughly.
inline constexpr double kReadingShare = 0.75;

// What there is to do in one layer.
struct MixedWork {
  double decode_time;  // nanoseconds, on all multiprocessors
  double num_tiles;    // of queries of prompts, of all heads
  double tile_time;    // nanoseconds, on average
  int num_multiprocessors;

  // When both are done, if decodes leave so many multiprocessors to the prompts.
  double end_beside(int left) const {
    const double others = num_multiprocessors - left;
    const double decodes_end =
        decode_time * std::max(1.0, kReadingShare * num_multiprocessors / others);
    // Those left out begin a tile as soon as they have ended one; so do the others from the
    // decodes' end on.
    double end = std::ceil(std::min(decodes_end / tile_time, num_tiles / left)) * tile_time;
    double others_end = decodes_end;
    double tiles_left = num_tiles - end / tile_time * left;
    while (tiles_left > 0.5) {
      double& next = others_end <= end ? others_end : end;
      tiles_left -= others_end <= end ? others : left;
      next += tile_time;
    }
    return std::max(end, others_end);
  }

  double end_one_after_the_other() const {
    return decode_time + kLaunchTime + std::ceil(num_tiles / num_multiprocessors) * tile_time;
  }
};

// What `params` says that there is to do. `tile_queries`: of prefill attention.
inline MixedWork mixed_work(const AttentionParams& params, int tile_queries,
                            int num_multiprocessors) {
  const AttentionBatch& batch = params.batch;
  const auto head_dim = static_cast<double>(params.pages.head_dim());
  const int64_t num_prompts = batch.num_sequences - batch.num_decodes;
  const int64_t num_queries = params.query.dim(0) - batch.num_decodes;  // of prompts, about
  auto keys = static_cast<double>(batch.num_decode_keys - batch.shared.spared_tokens);
  auto scores = static_cast<double>(batch.num_prefill_scores);
  if (params.sliding_window > 0) {
    const auto window = static_cast<double>(params.sliding_window);
    keys = std::min(keys, window * static_cast<double>(batch.num_decodes));
    scores = std::min(scores, window * static_cast<double>(num_queries));
  }
  // Keys and values of 2 bytes an element.
  const double bytes = 4.0 * static_cast<double>(params.pages.num_kv_heads()) * head_dim * keys;
  const auto tiles = static_cast<double>(num_prompts + num_queries / tile_queries);
  return {.decode_time = kDecodeByteTime * std::max(bytes, 0.0),
          .num_tiles = tiles * static_cast<double>(params.query.dim(1)),
          .tile_time = kPrefillTileTime + kPrefillScoreTime * head_dim * scores / tiles,
          .num_multiprocessors = num_multiprocessors};
}

// Multiprocessors that decode attention leaves to prefill attention; 0: one runs after the other,
// each on all.
inline int prefill_multiprocessors(const AttentionParams& params, const GpuTraits& gpu) {
  const AttentionBatch& batch = params.batch;
  const PrefillPlan prefill =
      plan_prefill_attention(gpu, params.pages.head_dim(), params.softcap > 0.0f);
  // Prompts over pages in float8_e4m3 take several launches, which need each other's results. In
  // batch-invariant steps there is no prefill attention.
  if (prefill.kernel != PrefillKernel::kHopper || params.pages.is_fp8() ||
      gpu.is_batch_invariant() || batch.num_decode_keys == 0 || batch.num_prefill_scores == 0) {
    return 0;
  }
  const MixedWork work = mixed_work(params, prefill.shape.tile_queries, gpu.num_multiprocessors);
  int best = 0;
  double best_end = work.end_one_after_the_other();
  for (int left = 2; left <= gpu.num_multiprocessors / 2; left *= 2) {
    const double end = work.end_beside(left);
    if (end < best_end) {
      best = left;
      best_end = end;
    }
  }
  return best;
}

}  // namespace tessera
