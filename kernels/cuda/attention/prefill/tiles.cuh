// The shapes of the Hopper prefill kernel and what its warps share.
#pragma once

#include "kernels/cuda/attention/prefill/plan.h"
#include "kernels/cuda/attention/prefill/schedule.cuh"
#include "kernels/cuda/device/tensor_map.h"
#include "kernels/cuda/primitives/mbarrier.cuh"
#include "kernels/cuda/primitives/ring_position.cuh"
#include "kernels/cuda/primitives/wgmma.cuh"

namespace tessera {

static_assert(kPanelColumns == kBoxColumns, "what wgmma reads is what the copy engine leaves");

template <typename Element_, int kHeadDim_, bool kSoftcap_>
struct PrefillConfig {
  using Element = Element_;
  static constexpr int kHeadDim = kHeadDim_;
  static constexpr bool kSoftcap = kSoftcap_;
  static constexpr PrefillTileShape kShape = hopper_prefill_shape(kHeadDim, kSoftcap);
  static constexpr int kWarpgroups = kShape.tile_queries / kWarpgroupRows;  // that compute
  static constexpr int kTileQueries = kShape.tile_queries;
  static constexpr int kTileKeys = kShape.tile_keys;
  static constexpr int kStages = kShape.stages;
  static constexpr int kQueryStages = kShape.query_stages;
  static constexpr int kConsumerThreads = kWarpgroupSize * kWarpgroups;
  static constexpr int kThreads = kWarpgroupSize + kConsumerThreads;
  // The last panel of heads of 96 is half empty: the copy engine fills it with zeros.
  static constexpr int kPanels = (kHeadDim + kPanelColumns - 1) / kPanelColumns;
  static constexpr int kQueryPanels = kPanels;
  static constexpr int kTileElements = kTileKeys * kPanels * kPanelColumns;
  static constexpr int kValueElements = kTileElements;
  // The copying warps give registers that they do not need to those that compute; a multiprocessor
  // has 64 K. Both numbers are multiples of 8, and their sum over all threads is not above what the
  // block started with.
  static constexpr int kProducerRegisters = kWarpgroups == 3 ? 32 : 40;
  static constexpr int kConsumerRegisters = kWarpgroups == 3 ? 160 : 232;
};

// Tiles as panels of 64 columns, swizzled by the copy engine. `full` barriers count the bytes that
// arrive; `empty` ones the warps that have finished reading, and for queries the threads. A place
// for values may be longer than what is copied there (kValueElements).
template <typename Config>
struct PrefillShared {
  using Element = typename Config::Element;
  Element queries[Config::kQueryStages]
                 [Config::kTileQueries * Config::kQueryPanels * kPanelColumns];
  Element keys[Config::kStages][Config::kTileElements];
  Element values[Config::kStages][Config::kValueElements];
  PrefillTile tiles[Config::kQueryStages];  // whose queries are there
  uint64_t query_full[Config::kQueryStages], query_empty[Config::kQueryStages];
  uint64_t key_full[Config::kStages], key_empty[Config::kStages];
  uint64_t value_full[Config::kStages], value_empty[Config::kStages];

  __device__ void init_barriers() {
    constexpr int kConsumerWarps = Config::kWarpgroups * 4;
#pragma unroll
    for (int stage = 0; stage < Config::kQueryStages; ++stage) {
      mbarrier_init(&query_full[stage], 1);
      mbarrier_init(&query_empty[stage], Config::kConsumerThreads);
    }
#pragma unroll
    for (int stage = 0; stage < Config::kStages; ++stage) {
      mbarrier_init(&key_full[stage], 1);
      mbarrier_init(&value_full[stage], 1);
      mbarrier_init(&key_empty[stage], kConsumerWarps);
      mbarrier_init(&value_empty[stage], kConsumerWarps);
    }
    fence_barrier_init();
  }
};

struct PrefillMaps {
  CUtensorMap query, keys, values;
  int box_tokens;  // of keys and values: divides both the page and the tile
};

}  // namespace tessera
