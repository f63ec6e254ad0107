// What one warp of the fused decode kernel computes of attention over keys and values in e4m3.
#pragma once

#include "kernels/cuda/attention/decode/turned_products.cuh"
#include "kernels/cuda/decode_step/warp.cuh"
#include "kernels/cuda/primitives/wgmma_fp8.cuh"

namespace tessera {

template <int kHeadDim>
struct FusedFp8AttentionWarp : FusedWarpState<kHeadDim, unit_tokens(kHeadDim, 1), kFp8WeightShift> {
  using Base = FusedWarpState<kHeadDim, unit_tokens(kHeadDim, 1), kFp8WeightShift>;
  // Two e4m3 count as one element of 16 bits.
  using Rows = BoxRows<__half, kHeadDim / 2>;
  using Base::output;
  using Base::query;
  using Base::scores;
  using Products = TurnedFp8Products<kHeadDim>;
  static_assert(Base::kTileKeys == 16);

  float score_scales[2];  // what scores of both queries are multiplied by

  // Turns the queries, pairs of bfloat16, into float16.
  __device__ void narrow_queries(float key_scale) {
    Products::narrow_queries(query, key_scale, score_scales);
  }

  __device__ void multiply_keys(const Rows& keys) {
    Products::multiply_keys(scores, query, score_scales, keys, 0);
  }

  __device__ void multiply_values(const Rows& values) {
    Products::template multiply_values<false>(output, scores, values, 0, Base::kTileKeys);
  }

  // Multiplies the output by the scale of the values.
  __device__ void scale_output(float value_scale) {
#pragma unroll
    for (auto& tile : output) {
#pragma unroll
      for (float& value : tile) value *= value_scale;
    }
  }

  __device__ void store(const DecodeStaging<kHeadDim>& staging, int slice, int num_rows) const {
    this->template store_dimensions<Products>(staging, slice, num_rows);
  }
};

}  // namespace tessera
