// Attention of one warp's query rows, which stand on the rows of tensor-core tiles. The kernels
// differ only in which rows a warp owns and which keys it visits.
#pragma once

#include "kernels/cuda/attention/online_softmax.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/cuda/primitives/swizzled_rows.cuh"

namespace tessera {

// kRowTiles tiles of 16 query rows, kKeys keys per tile.
template <typename Element, int kHeadDim, int kRowTiles, int kKeys, int kWeightShift = 0>
struct WarpAttention
    : OnlineSoftmax<QueryPlace::kRows, kRowTiles, kKeys / 8, kHeadDim / 8, kWeightShift> {
  using Rows = SwizzledRows<Element, kHeadDim>;
  static constexpr int kKeyTiles = kKeys / 8;
  static constexpr int kOutputTiles = kHeadDim / 8;

  // scores = Q . K^T for query rows from `query_row` and keys from `key_row` of their tiles.
  __device__ void multiply_keys(const Rows& queries, int query_row, const Rows& keys, int key_row) {
    const uint32_t lane = reread_lane_index();
    const auto lane_queries = queries.lane_rows(query_row + lane % 16, lane / 16);
    const auto lane_keys = keys.lane_rows(key_row + lane / 16 * 8 + lane % 8, lane / 8 % 2);
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (float& score : this->scores[m][n]) score = 0.0f;
      }
    }
#pragma unroll
    for (int step = 0; step < kHeadDim / 16; ++step) {
      uint32_t query[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) {
        load_matrices(query[m], lane_queries.chunk(m * 16, step * 2));
      }
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        uint32_t key[4];
        load_matrices(key, lane_keys.chunk(n * 8, step * 2));
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          multiply_add<Element>(this->scores[m][n], query[m], key[0], key[1]);
          multiply_add<Element>(this->scores[m][n + 1], query[m], key[2], key[3]);
        }
      }
    }
  }

  // Hides the keys that a row does not see. Keys are counted from the tile's first. The lane's
  // first row sees the `window` keys before `visible_end`, each later one row_step keys further.
  __device__ void mask(int visible_end, int window, int row_step) {
    const int first_column = reread_lane_index() % 4 * 2;
#pragma unroll
    for (int m = 0; m < kRowTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int end = visible_end + (2 * m + i / 2) * row_step - first_column;
        const int begin = end - window;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          const int column = n * 8 + i % 2;
          if (column < begin || column >= end) this->scores[m][n][i] = -INFINITY;
        }
      }
    }
  }

  // The weights of row tile m for the step-th 16 keys, rounded, as operand A of the second product.
  // The accumulators of two neighbouring key tiles are that operand as they are (see
  // primitives/mma.cuh), so the weights never leave their registers.
  __device__ void round_weights(uint32_t (&weights)[4], int m, int step) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto& pair = this->scores[m][2 * step + i / 2];
      weights[i] = pack_pair<Element>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
    }
  }

  // output += scores . V
  __device__ void multiply_values(const Rows& values, int value_row) {
    const uint32_t lane = reread_lane_index();
    const auto lane_values = values.lane_rows(value_row + lane % 16, lane / 16);
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      uint32_t weights[kRowTiles][4];
#pragma unroll
      for (int m = 0; m < kRowTiles; ++m) round_weights(weights[m], m, step);
#pragma unroll
      for (int n = 0; n < kOutputTiles; n += 2) {
        uint32_t value[4];
        load_matrices_transposed(value, lane_values.chunk(step * 16, n));
#pragma unroll
        for (int m = 0; m < kRowTiles; ++m) {
          multiply_add<Element>(this->output[m][n], weights[m], value[0], value[1]);
          multiply_add<Element>(this->output[m][n + 1], weights[m], value[2], value[3]);
        }
      }
    }
  }
};

}  // namespace tessera
