// The two matrix products of attention on one tile. Sums stay in registers: every loaded lane and
// every broadcast element is used several times.
#pragma once

#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/vectors.h"

namespace tessera {

// scores[key + k][row + i] = query . key, for kKeys keys and kVectors vectors of rows.
template <int kLanes, int kKeys, int kVectors>
VECTOR_INLINE void multiply_keys(const AttentionBlock& block, const KeyTile& tile, int64_t key,
                                 int64_t row) {
  typename VectorOf<kLanes>::Floats sums[kKeys][kVectors] = {}, queries[kVectors];
  const float* keys[kKeys];
  for (int k = 0; k < kKeys; ++k) keys[k] = tile.keys[key + k];
  const float* query = block.queries + row;
  for (int64_t d = 0; d < block.head_dim; ++d, query += kBlockRows) {
    for (int v = 0; v < kVectors; ++v) load(query + v * kLanes, queries[v]);
    for (int k = 0; k < kKeys; ++k) {
      for (int v = 0; v < kVectors; ++v) sums[k][v] += queries[v] * keys[k][d];
    }
  }
  for (int k = 0; k < kKeys; ++k) {
    for (int v = 0; v < kVectors; ++v) {
      store(sums[k][v], block.scores + (key + k) * kBlockRows + row + v * kLanes);
    }
  }
}

// All rows from `row` on: blocks of kVectors vectors, then of fewer.
template <int kLanes, int kKeys, int kVectors>
VECTOR_INLINE void multiply_queries(const AttentionBlock& block, const KeyTile& tile,
                                    int64_t row = 0) {
  for (; row + (kVectors - 1) * kLanes < block.num_rows; row += kVectors * kLanes) {
    for (int64_t key = 0; key < tile.count; key += kKeys) {
      multiply_keys<kLanes, kKeys, kVectors>(block, tile, key, row);
    }
  }
  if constexpr (kVectors > 1) multiply_queries<kLanes, kKeys, kVectors - 1>(block, tile, row);
}

// accumulated[r] = accumulated[r] * factors[r] + sum over keys of scores[key][r] * values[key], for
// kRows rows and kVectors vectors of values from `column` on. accumulated [kRows, row_width],
// scores [kTileKeys, kScoreStride].
template <int kLanes, int kRows, int kVectors, int kScoreStride>
VECTOR_INLINE void multiply_values(const KeyTile& tile, const float* scores, const float* factors,
                                   int64_t column, int64_t row_width, float* accumulated) {
  typename VectorOf<kLanes>::Floats sums[kRows][kVectors], values[kVectors];
  accumulated += column;
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      load(accumulated + r * row_width + v * kLanes, sums[r][v]);
      sums[r][v] *= factors[r];
    }
  }
  for (int64_t key = 0; key < tile.count; ++key, scores += kScoreStride) {
    for (int v = 0; v < kVectors; ++v) load(tile.values[key] + column + v * kLanes, values[v]);
    for (int r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) sums[r][v] += values[v] * scores[r];
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      store(sums[r][v], accumulated + r * row_width + v * kLanes);
    }
  }
}

// All rows from `row` on: blocks of kRows, then of half as many.
template <int kLanes, int kRows, int kVectors>
VECTOR_INLINE void accumulate_rows(const AttentionBlock& block, const KeyTile& tile, int64_t column,
                                   int64_t row = 0) {
  for (; row + kRows <= block.num_rows; row += kRows) {
    multiply_values<kLanes, kRows, kVectors, kBlockRows>(
        tile, block.scores + row, block.factors + row, column, block.row_width, block.row_of(row));
  }
  if constexpr (kRows > 1) accumulate_rows<kLanes, kRows / 2, kVectors>(block, tile, column, row);
}

// All columns from `column` on: blocks of kVectors vectors, then of half as many.
template <int kLanes, int kRows, int kVectors>
VECTOR_INLINE void accumulate_values(const AttentionBlock& block, const KeyTile& tile,
                                     int64_t column = 0) {
  for (; column + kVectors * kLanes <= block.row_width; column += kVectors * kLanes) {
    accumulate_rows<kLanes, kRows, kVectors>(block, tile, column);
  }
  if constexpr (kVectors > 1) {
    accumulate_values<kLanes, kRows, kVectors / 2>(block, tile, column);
  }
}

}  // namespace tessera
