// Keys and values of consecutive tokens, wherever their pages lie and whatever their type.
#pragma once

#include <cstdint>

#include "kernels/attention_params.h"

namespace tessera {

// With their values in float32 and the scores of a block of rows, what a core's second cache holds.
inline constexpr int64_t kTileKeys = 96;

// Rows of a tile are this long, the end zeros: a whole number of vectors.
constexpr int64_t padded_head_dim(int64_t head_dim) { return (head_dim + 15) / 16 * 16; }

struct KeyTile {
  int64_t first;                   // token of the context
  int64_t count;                   // from 1 to kTileKeys
  const float* keys[kTileKeys];    // [padded_head_dim]; past the count the last again
  const float* values[kTileKeys];  // [padded_head_dim]
};

// One KV head of one sequence.
struct KeySource {
  const KvPages& pages;
  const int32_t* block_table;
  int64_t kv_head;
};

// `tile` is given with first and count. Rows that are float32 and as long as the tile wants are
// read in place, others are copied to `storage` [2, kTileKeys, padded_head_dim].
void gather_tile(const KeySource& source, float* storage, KeyTile& tile);

}  // namespace tessera
