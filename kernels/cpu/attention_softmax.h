// From the scores of a tile to their powers, a column of vectors at a time. Lanes never mix.
#pragma once

#include <limits>

#include "kernels/cpu/vectors.h"

namespace tessera {

// Vectors of scores of the same rows, whose tokens follow each other.
struct ScoreColumn {
  float* scores;
  int64_t stride;  // from one vector to the next, in scores
  int64_t count;   // vectors
};

// score = softcap * tanh(x / 2) with tanh(x / 2) = (1 - e) / (1 + e), e = exp(-x), for x >= 0, and
// tanh(-x) = -tanh(x). Here comes x * log2(e).
template <int kLanes>
VECTOR_INLINE void cap_scores(const ScoreColumn& column, float softcap) {
  using Floats = typename VectorOf<kLanes>::Floats;
  using Bits = typename VectorOf<kLanes>::Bits;
  Floats x;
  for (int64_t i = 0; i < column.count; ++i) {
    load(column.scores + i * column.stride, x);
    const Bits sign = (Bits)x & 0x80000000u;
    Floats e = (Floats)((Bits)x | 0x80000000u);
    exp2_of_nonpositive(e);
    const Floats capped = (1.0f - e) / (1.0f + e) * softcap;
    store((Floats)((Bits)capped | sign), column.scores + i * column.stride);
  }
}

// Scores outside [first_tokens, token_ends), a range per lane, become -infinity. Vector i is of
// token + i * tokens_per_vector.
template <int kLanes>
VECTOR_INLINE void mask_scores(const ScoreColumn& column, const int32_t* first_tokens,
                               const int32_t* token_ends, int64_t token,
                               int64_t tokens_per_vector) {
  using Floats = typename VectorOf<kLanes>::Floats;
  typename VectorOf<kLanes>::Integers firsts, ends;
  std::memcpy(&firsts, first_tokens, sizeof(firsts));
  std::memcpy(&ends, token_ends, sizeof(ends));
  const Floats hidden = Floats{} - std::numeric_limits<float>::infinity();
  Floats lanes;
  for (int64_t i = 0; i < column.count; ++i) {
    const auto of_vector = static_cast<int32_t>(token + i * tokens_per_vector);
    load(column.scores + i * column.stride, lanes);
    lanes = firsts <= of_vector ? lanes : hidden;
    lanes = ends > of_vector ? lanes : hidden;
    store(lanes, column.scores + i * column.stride);
  }
}

// Raises `largest` to what the column has.
template <typename Floats>
VECTOR_INLINE void find_largest(const ScoreColumn& column, Floats& largest) {
  Floats lanes;
  for (int64_t i = 0; i < column.count; ++i) {
    load(column.scores + i * column.stride, lanes);
    largest = lanes > largest ? lanes : largest;
  }
}

// Scores become 2^(score - largest), whose sums are added to `sums`.
template <typename Floats>
VECTOR_INLINE void exponentiate_scores(const ScoreColumn& column, const Floats& largest,
                                       Floats& sums) {
  Floats lanes;
  for (int64_t i = 0; i < column.count; ++i) {
    load(column.scores + i * column.stride, lanes);
    lanes -= largest;
    exp2_of_nonpositive(lanes);
    store(lanes, column.scores + i * column.stride);
    sums += lanes;
  }
}

}  // namespace tessera
