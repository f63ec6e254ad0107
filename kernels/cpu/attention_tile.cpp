#include "kernels/cpu/attention_tile.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/vectors.h"

namespace tessera {
namespace {

// values[i] = exp(values[i] - largest) for a whole number of lanes; returns their sum.
VECTOR_INLINE float exponentiate(float* values, int64_t count, float largest) {
  Lanes sum = {};
  Lanes lanes;
  for (int64_t i = 0; i < count; i += kLanes) {
    load(values + i, lanes);
    lanes -= largest;
    exp_of_nonpositive(lanes);
    store(lanes, values + i);
    sum += lanes;
  }
  return sum_of(sum);
}

// accumulated = accumulated * factor + sum over i of probabilities[i] * values[i], over columns
// [begin, begin + kBlocks * kLanes) of values [count, head_dim].
template <int kBlocks>
VECTOR_INLINE void accumulate_columns(const float* probabilities, const float* values,
                                      int64_t count, int64_t head_dim, int64_t begin, float factor,
                                      float* accumulated) {
  Lanes sums[kBlocks], lanes;
  for (int block = 0; block < kBlocks; ++block) {
    load(accumulated + begin + block * kLanes, sums[block]);
    sums[block] *= factor;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int block = 0; block < kBlocks; ++block) {
      load(values + i * head_dim + begin + block * kLanes, lanes);
      sums[block] += probabilities[i] * lanes;
    }
  }
  for (int block = 0; block < kBlocks; ++block) {
    store(sums[block], accumulated + begin + block * kLanes);
  }
}

VECTOR_INLINE void accumulate_values(const float* probabilities, const float* values, int64_t count,
                                     int64_t head_dim, float factor, float* accumulated) {
  int64_t begin = 0;
  for (; begin + 4 * kLanes <= head_dim; begin += 4 * kLanes) {
    accumulate_columns<4>(probabilities, values, count, head_dim, begin, factor, accumulated);
  }
  for (; begin + kLanes <= head_dim; begin += kLanes) {
    accumulate_columns<1>(probabilities, values, count, head_dim, begin, factor, accumulated);
  }
  for (; begin < head_dim; ++begin) {
    float sum = accumulated[begin] * factor;
    for (int64_t i = 0; i < count; ++i) sum += probabilities[i] * values[i * head_dim + begin];
    accumulated[begin] = sum;
  }
}

// scores[i] = softcap * tanh(scores[i] / softcap) for a whole number of lanes, with
// tanh(x) = (1 - e) / (1 + e), e = exp(-2 x), for x >= 0, and tanh(-x) = -tanh(x).
VECTOR_FUNCTION void cap_scores(float* scores, int64_t count, float softcap) {
  Lanes lanes;
  for (int64_t i = 0; i < count; i += kLanes) {
    load(scores + i, lanes);
    const LaneBits sign = (LaneBits)lanes & 0x80000000u;
    Lanes e = (Lanes)((LaneBits)lanes | 0x80000000u) * (2.0f / softcap);
    exp_of_nonpositive(e);
    lanes = (1.0f - e) / (1.0f + e) * softcap;
    lanes = (Lanes)((LaneBits)lanes | sign);
    store(lanes, scores + i);
  }
}

}  // namespace

VECTOR_FUNCTION void add_tile(const float* query, const float* keys, const float* values,
                              int64_t count, int64_t head_dim, float scale, float softcap,
                              RunningSoftmax& state, float* accumulated) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  alignas(64) float scores[kTileKeys];
  float largest = -kInfinity;
  for (int64_t i = 0; i < count; ++i) {
    scores[i] = dot(keys + i * head_dim, query, head_dim) * scale;
    largest = std::max(largest, scores[i]);
  }
  const int64_t padded_count = (count + kLanes - 1) / kLanes * kLanes;
  if (softcap > 0.0f) {
    std::fill(scores + count, scores + padded_count, 0.0f);
    cap_scores(scores, padded_count, softcap);
    largest = *std::max_element(scores, scores + count);
  }
  std::fill(scores + count, scores + padded_count, -kInfinity);
  largest = std::max(largest, state.largest);

  const float factor = std::exp(state.largest - largest);  // 0 for the first tile
  state.sum = state.sum * factor + exponentiate(scores, padded_count, largest);
  state.largest = largest;
  accumulate_values(scores, values, count, head_dim, factor, accumulated);
}

void merge(const RunningSoftmax& other, const float* other_accumulated, int64_t head_dim,
           RunningSoftmax& state, float* accumulated) {
  const float largest = std::max(state.largest, other.largest);
  const float factor = std::exp(state.largest - largest);
  const float other_factor = std::exp(other.largest - largest);
  for (int64_t d = 0; d < head_dim; ++d) {
    accumulated[d] = accumulated[d] * factor + other_accumulated[d] * other_factor;
  }
  state.sum = state.sum * factor + other.sum * other_factor;
  state.largest = largest;
}

void normalize(const float* accumulated, int64_t head_dim, float sum, float* out) {
  if (sum == 0.0f) {
    std::fill_n(out, head_dim, 0.0f);
    return;
  }
  for (int64_t d = 0; d < head_dim; ++d) out[d] = accumulated[d] / sum;
}

}  // namespace tessera
