// The running softmax of a block of query rows over keys and values that come a tile at a time.
//
// FlashAttention (Dao et al. 2022, section 3.1) over the online softmax of Milakov & Gimelshein
// (2018): with m the largest score so far, l the sum of 2^(score - m) and a the sum of
// 2^(score - m) * value, a new tile raises m to m', and l and a are scaled by 2^(m - m') before
// its own terms are added. a / l is the result, and no more scores are ever kept than a tile's.
// Scores are multiplied by log2(e), since powers of two are what a machine computes fastest.
//
// Scores lie [key, row], rows side by side in the lanes of a vector: their largest, their powers
// and their sums need no arithmetic across lanes, and neither keys nor values are ever transposed,
// only the queries, once. What a row computes is the same bit by bit whatever the rows beside it.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/cpu/key_tile.h"
#include "kernels/cpu/thread_scratch.h"

namespace tessera {

inline constexpr int64_t kBlockRows = 96;
// Up to so many, rows would leave most lanes of a vector empty.
inline constexpr int64_t kFewRows = 8;

// A query of one head, which sees keys [first_key, key_end).
struct QueryRow {
  const float* query;  // [head_dim]
  int64_t first_key, key_end;
};

// How a vector holds the scores of few rows.
enum class RowLayout : uint8_t {
  kFastest,  // those of several keys beside each other
  kInLanes,  // as those of many rows: what a row computes does not depend on how many there are
};

struct ScoreRule {
  float scale;
  float softcap;  // 0: none
};

// The state of up to kBlockRows rows: arrays in the memory of one thread.
struct AttentionBlock {
  int64_t num_rows;
  RowLayout layout;
  int64_t head_dim;
  int64_t row_width;    // padded_head_dim(head_dim)
  float score_softcap;  // in the unit of scores; 0: none

  float* queries;       // scaled [head_dim, kBlockRows], of few rows [kFewRows, row_width]
  float* scores;        // [kTileKeys, kBlockRows], then their powers
  float* accumulated;   // [kBlockRows, row_width]: a
  float* largest;       // [kBlockRows]: m, lowest() before the first key
  float* sums;          // [kBlockRows]: l
  float* factors;       // [kBlockRows]: 2^(m - m')
  int32_t* first_keys;  // [kBlockRows]
  int32_t* key_ends;    // [kBlockRows]
  float* tile_storage;  // for gather_tile

  bool has_few_rows() const { return layout == RowLayout::kFastest && num_rows <= kFewRows; }
  float* row_of(int64_t row) const { return accumulated + row * row_width; }
};

// Nothing accumulated yet. In memory of `thread`, until its next block.
AttentionBlock start_block(std::span<const QueryRow> rows, int64_t head_dim, const ScoreRule& rule,
                           RowLayout layout, ThreadScratch& scratch, int thread);

// Adds keys and values, of which not every row need see every one.
void add_tile(const AttentionBlock& block, const KeyTile& tile);

}  // namespace tessera
