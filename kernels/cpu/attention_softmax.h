// From scores to their powers on one tile, one vector of rows at a time.
#pragma once

#include <limits>

#include "kernels/cpu/attention_block.h"
#include "kernels/cpu/vectors.h"

namespace tessera {

// score = softcap * tanh(x / 2) with tanh(x / 2) = (1 - e) / (1 + e), e = exp(-x), for x >= 0, and
// tanh(-x) = -tanh(x). Here comes x * log2(e).
template <int kLanes>
VECTOR_INLINE void cap_scores(const AttentionBlock& block, int64_t count, int64_t row) {
  using Floats = typename VectorOf<kLanes>::Floats;
  using Bits = typename VectorOf<kLanes>::Bits;
  for (int64_t key = 0; key < count; ++key) {
    Floats x;
    load(block.scores + key * kBlockRows + row, x);
    const Bits sign = (Bits)x & 0x80000000u;
    Floats e = (Floats)((Bits)x | 0x80000000u);
    exp2_of_nonpositive(e);
    const Floats capped = (1.0f - e) / (1.0f + e) * block.score_softcap;
    store((Floats)((Bits)capped | sign), block.scores + key * kBlockRows + row);
  }
}

// Scores of keys that a row does not see become -infinity.
template <int kLanes>
VECTOR_INLINE void mask_scores(const AttentionBlock& block, const KeyTile& tile, int64_t row) {
  using Floats = typename VectorOf<kLanes>::Floats;
  typename VectorOf<kLanes>::Integers first_keys, key_ends;
  std::memcpy(&first_keys, block.first_keys + row, sizeof(first_keys));
  std::memcpy(&key_ends, block.key_ends + row, sizeof(key_ends));
  for (int64_t key = 0; key < tile.count; ++key) {
    const auto token = static_cast<int32_t>(tile.first + key);
    Floats scores;
    load(block.scores + key * kBlockRows + row, scores);
    scores = (first_keys <= token) & (key_ends > token)
                 ? scores
                 : Floats{} - std::numeric_limits<float>::infinity();
    store(scores, block.scores + key * kBlockRows + row);
  }
}

// Raises m, and scores become 2^(score - m), whose sums l gets.
template <int kLanes>
VECTOR_INLINE void exponentiate_scores(const AttentionBlock& block, int64_t count, int64_t row) {
  typename VectorOf<kLanes>::Floats largest, largest_before, lanes, factors, sums;
  load(block.largest + row, largest_before);
  largest = largest_before;
  for (int64_t key = 0; key < count; ++key) {
    load(block.scores + key * kBlockRows + row, lanes);
    largest = lanes > largest ? lanes : largest;
  }
  store(largest, block.largest + row);
  factors = largest_before - largest;
  exp2_of_nonpositive(factors);
  store(factors, block.factors + row);
  load(block.sums + row, sums);
  sums *= factors;
  for (int64_t key = 0; key < count; ++key) {
    load(block.scores + key * kBlockRows + row, lanes);
    lanes -= largest;
    exp2_of_nonpositive(lanes);
    store(lanes, block.scores + key * kBlockRows + row);
    sums += lanes;
  }
  store(sums, block.sums + row);
}

}  // namespace tessera
