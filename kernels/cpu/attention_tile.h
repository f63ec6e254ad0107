// The running softmax of one query head over keys and values that come a few at a time.
//
// FlashAttention (Dao et al. 2022, section 3.1) over the online softmax of Milakov & Gimelshein
// (2018): with m the largest score so far, l the sum of exp(score - m) and a the sum of
// exp(score - m) * value, a new tile raises m to m', and l and a are scaled by exp(m - m') before
// its own terms are added. a / l is the result, and no row of scores is ever kept.
#pragma once

#include <cstdint>
#include <limits>

namespace tessera {

// Keys of a tile: with their values in float32, what stays in a core's first caches.
inline constexpr int64_t kTileKeys = 64;

struct RunningSoftmax {
  float largest = -std::numeric_limits<float>::infinity();  // m
  float sum = 0.0f;                                         // l
};

// Adds `count` <= kTileKeys keys and values, at least one, to `state` and `accumulated`, which
// holds zeros before the first tile. scale and softcap as in AttentionParams.
//   query, accumulated [head_dim]; keys, values [count, head_dim]
void add_tile(const float* query, const float* keys, const float* values, int64_t count,
              int64_t head_dim, float scale, float softcap, RunningSoftmax& state,
              float* accumulated);

// Adds what another pass over other keys has accumulated. It may have seen none, `state` has seen
// some.
void merge(const RunningSoftmax& other, const float* other_accumulated, int64_t head_dim,
           RunningSoftmax& state, float* accumulated);

// out = accumulated / sum, or zeros when no key has been seen. out may be accumulated.
void normalize(const float* accumulated, int64_t head_dim, float sum, float* out);

}  // namespace tessera
