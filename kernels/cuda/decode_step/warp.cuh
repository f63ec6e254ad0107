// What one warp of the fused decode kernel computes of attention.
//
// A query group has at most kMaxFusedGroup = 8 rows, so that products are TurnedProducts. This
// kernel has no register to spare: a variable that did not fit would be fetched through the busy
// memory system, 1 us each.
//
// The online softmax is FlashAttention-2's, with the exact maximum.
#pragma once

#include "kernels/cuda/attention/decode/merge.cuh"
#include "kernels/cuda/attention/decode/ring.cuh"
#include "kernels/cuda/attention/decode/turned_products.cuh"
#include "kernels/cuda/decode_step/plan.h"

namespace tessera {

// What a warp has of a piece, and its online softmax. The lane's queries are 2 (lane % 4) and the
// next. kWeightShift: weights are multiplied by this power of two, and so are sums and outputs
// until the merge divides them.
template <int kHeadDim, int kUnitTokens_, int kWeightShift = 0>
struct FusedWarpState {
  static constexpr int kSteps = kHeadDim / 16;
  static constexpr int kUnitTokens = kUnitTokens_;
  // A unit of wide heads has half the keys of a tile. The other half of the tile repeats them, and
  // no query sees it.
  static constexpr int kTileKeys = kUnitTokens < 16 ? kUnitTokens : 16;
  static constexpr int kKeyTiles = kUnitTokens / kTileKeys;

  uint32_t query[kSteps][2];   // as operand B: query lane / 4
  float output[kSteps][4];     // two dimensions of both queries
  float scores[kKeyTiles][4];  // keys lane / 4 and 8 more, of both queries
  float query_max[2];
  float query_sum[2];  // of this lane's keys until finish_sums()

  __device__ void reset() {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int i = 0; i < 4; ++i) output[step][i] = 0.0f;
      query[step][0] = query[step][1] = 0;
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      query_max[j] = -INFINITY;
      query_sum[j] = 0.0f;
    }
  }

  // Squeezes scores into (-1, 1), with a softcap; see online_softmax.cuh.
  __device__ void cap(float softcap_scale) {
    if (softcap_scale == 0.0f) return;
#pragma unroll
    for (auto& tile_scores : scores) {
#pragma unroll
      for (int i = 0; i < kTileKeys / 4; ++i) {
        tile_scores[i] = tanh_of(tile_scores[i] * softcap_scale);
      }
    }
  }

  // Hides keys outside [begin, end), counted from the unit's first.
  __device__ void mask(int begin, int end) {
#pragma unroll
    for (int tile = 0; tile < kKeyTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int key = tile * 16 + reread_lane_index() / 4 + i / 2 * 8;
        if (key < begin || key >= end) scores[tile][i] = -INFINITY;
      }
    }
  }

  __device__ void update_softmax(float scale_log2) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      float largest = query_max[j];
#pragma unroll
      for (int tile = 0; tile < kKeyTiles; ++tile) {
        largest = fmaxf(largest, fmaxf(scores[tile][j], scores[tile][j + 2]));
      }
      max_over_column(largest);
      // 2^(-inf - 0), not 2^(-inf - -inf), as long as no key was seen.
      const float base = largest == -INFINITY ? 0.0f : largest * scale_log2;
      const float correction = fast_exp2(query_max[j] * scale_log2 - base);
      float offset = base;
      if constexpr (kWeightShift != 0) offset -= kWeightShift;
      query_max[j] = largest;
      query_sum[j] *= correction;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        output[step][j] *= correction;
        output[step][j + 2] *= correction;
      }
#pragma unroll
      for (int tile = 0; tile < kKeyTiles; ++tile) {
#pragma unroll
        for (int i = j; i < 4; i += 2) {
          scores[tile][i] = fast_exp2(scores[tile][i] * scale_log2 - offset);
          query_sum[j] += scores[tile][i];
        }
      }
    }
  }

  __device__ void finish_sums() {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      sum_over_column(query_sum[j]);
    }
  }

  // Leaves the first num_rows queries' results for the merge.
  template <typename Products>
  __device__ void store_dimensions(const DecodeStaging<kHeadDim>& staging, int slice,
                                   int num_rows) const {
    const int lane = reread_lane_index();
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = lane % 4 * 2 + j;
      if (row >= num_rows) continue;
      const int index = slice * staging.item_rows + row;
      float* const target =
          staging.outputs + index * staging.kStride + Products::kFirstFactor * (lane / 4);
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        target[step * 16] = output[step][j];
        target[step * 16 + Products::kDistance] = output[step][j + 2];
      }
      if (lane / 4 == 0) {
        staging.row_maxs[index] = query_max[j];
        staging.row_sums[index] = query_sum[j];
      }
    }
  }
};

// What a warp computes of a piece over keys and values in bfloat16.
template <int kHeadDim>
struct FusedAttentionWarp : FusedWarpState<kHeadDim, unit_tokens(kHeadDim)> {
  using Base = FusedWarpState<kHeadDim, unit_tokens(kHeadDim)>;
  using Element = __nv_bfloat16;
  using Rows = BoxRows<Element, kHeadDim>;
  using Base::kTileKeys;
  using Base::output;
  using Base::query;
  using Base::scores;
  using Products = TurnedProducts<Element, kHeadDim, kTileKeys, 2>;

  __device__ void multiply_keys(const Rows& keys) {
    Products::multiply_keys(scores, query, keys, 0);
  }

  __device__ void multiply_values(const Rows& values) {
    Products::template multiply_values<false>(output, scores, values, 0, kTileKeys);
  }

  __device__ void store(const DecodeStaging<kHeadDim>& staging, int slice, int num_rows) const {
    this->template store_dimensions<Products>(staging, slice, num_rows);
  }
};

}  // namespace tessera
