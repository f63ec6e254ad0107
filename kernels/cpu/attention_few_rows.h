// A tile for few rows, as decodes have them: so few that as lanes of a vector they would leave most
// of it empty. The elements of a key lie in the lanes instead, and scores [key, kRows], so that a
// vector of scores has those of several keys.
#pragma once

#include <algorithm>

#include "kernels/cpu/attention_products.h"
#include "kernels/cpu/attention_softmax.h"

namespace tessera {

template <int kLanes, int kRows>
struct FewRows {
  // Rows [row, row + kRows), of which the block may have fewer.
  VECTOR_INLINE static void add_tile(const AttentionBlock& block, const KeyTile& tile,
                                     int64_t row) {
    for (int64_t key = 0; key < tile.count; key += kKeys) multiply_keys(block, tile, row, key);
    const ScoreColumn column{block.scores, kLanes, (tile.count + kKeys - 1) / kKeys};
    if (block.score_softcap > 0.0f) cap_scores<kLanes>(column, block.score_softcap);
    mask(block, tile, row, column);
    exponentiate(block, row, column);
    accumulate<kLanes == 16 ? 4 : 2>(block, tile, row);
  }

 private:
  using Floats = typename VectorOf<kLanes>::Floats;

  static constexpr int kKeys = kLanes / kRows;  // of one vector of scores
  // Rows of keys that are fetched ahead. Memory is what decodes wait for: with this, and with
  // values fetched while their keys are multiplied, they read 22 GB/s of 30 instead of 18.
  static constexpr int kKeysAhead = 16;

  // scores[k][r] = query r . key k. Every element of a key is loaded for all rows.
  VECTOR_INLINE static void multiply_keys(const AttentionBlock& block, const KeyTile& tile,
                                          int64_t row, int64_t key) {
    const float* queries = block.queries + row * block.row_width;
    Floats sums[kLanes] = {}, query_lanes[kRows], key_lanes;
    for (int64_t d = 0; d < block.row_width; d += kLanes) {
      for (int r = 0; r < kRows; ++r) load(queries + r * block.row_width + d, query_lanes[r]);
      for (int k = 0; k < kKeys; ++k) {
        load(tile.keys[key + k] + d, key_lanes);
        __builtin_prefetch(tile.keys[key + k] + kKeysAhead * block.row_width + d);
        __builtin_prefetch(tile.values[key + k] + d);
        for (int r = 0; r < kRows; ++r) sums[k * kRows + r] += query_lanes[r] * key_lanes;
      }
    }
    sum_each(sums);
    store(sums[0], block.scores + key * kRows);
  }

  // The last vector may have keys past the tile.
  VECTOR_INLINE static void mask(const AttentionBlock& block, const KeyTile& tile, int64_t row,
                                 const ScoreColumn& column) {
    int32_t first_tokens[kLanes], token_ends[kLanes];
    const auto tile_end = static_cast<int32_t>(tile.first + tile.count);
    for (int i = 0; i < kLanes; ++i) {
      first_tokens[i] = block.first_keys[row + i % kRows] - i / kRows;
      token_ends[i] = std::min(block.key_ends[row + i % kRows], tile_end) - i / kRows;
    }
    mask_scores<kLanes>(column, first_tokens, token_ends, tile.first, kKeys);
  }

  // Lane i is of row i % kRows.
  VECTOR_INLINE static void repeat(const float* rows, Floats& lanes) {
    float of_lanes[kLanes];
    for (int i = 0; i < kLanes; ++i) of_lanes[i] = rows[i % kRows];
    load(of_lanes, lanes);
  }

  VECTOR_INLINE static void find_largest_of_rows(const ScoreColumn& column, Floats& largest) {
    find_largest(column, largest);
    float of_lanes[kLanes];
    store(largest, of_lanes);
    for (int i = kRows; i < kLanes; ++i) {
      of_lanes[i % kRows] = std::max(of_lanes[i % kRows], of_lanes[i]);
    }
    repeat(of_lanes, largest);
  }

  VECTOR_INLINE static void exponentiate(const AttentionBlock& block, int64_t row,
                                         const ScoreColumn& column) {
    Floats factors, largest, sums = {};
    repeat(block.largest + row, factors);
    largest = factors;
    find_largest_of_rows(column, largest);
    factors -= largest;
    exp2_of_nonpositive(factors);
    exponentiate_scores(column, largest, sums);
    store_first(largest, kRows, block.largest + row);
    store_first(factors, kRows, block.factors + row);
    for (int r = 0; r < kRows; ++r) block.sums[row + r] *= block.factors[row + r];
    for (int i = 0; i < kLanes; ++i) block.sums[row + i % kRows] += sums[i];
  }

  template <int kVectors>
  VECTOR_INLINE static void accumulate(const AttentionBlock& block, const KeyTile& tile,
                                       int64_t row, int64_t column = 0) {
    for (; column + kVectors * kLanes <= block.row_width; column += kVectors * kLanes) {
      multiply_values<kLanes, kRows, kVectors, kRows>(tile, block.scores, block.factors + row,
                                                      column, block.row_width, block.row_of(row));
    }
    if constexpr (kVectors > 1) accumulate<kVectors / 2>(block, tile, row, column);
  }
};

}  // namespace tessera
