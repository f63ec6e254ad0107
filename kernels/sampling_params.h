// What the sampling operations need per row of logits, as tensors on the backend's device.
#pragma once

#include <cstdint>

#include "kernels/tensor/tensor.h"

namespace tessera {

// Token penalties, in the order they are applied to logits [num_rows, vocab_size]:
//   repetition (Keskar et al. 2019, CTRL): l > 0 ? l / r : l * r for every listed token,
//   frequency:  l -= frequency * count,   presence: l -= presence if count > 0.
// Row r lists distinct tokens [offsets[r], offsets[r + 1]) of `tokens` with their counts,
// which are 0 for tokens that only repetition counts. One with kBarredCount gets the lowest finite
// logit instead, so that it is not drawn.
inline constexpr int32_t kBarredCount = -1;

struct PenaltyBatch {
  Tensor offsets;     // int32 [num_rows + 1]
  Tensor tokens;      // int32 [num_listed], distinct within a row
  Tensor counts;      // int32 [num_listed], 0 or more, or kBarredCount
  Tensor repetition;  // float32 [num_rows], 1: off
  Tensor frequency;   // float32 [num_rows], 0: off
  Tensor presence;    // float32 [num_rows], 0: off
  // float32 [num_listed], or empty: receives the logits of the listed tokens as they were, for
  // Operations::restore_penalized.
  Tensor before = {};
};

// One draw per row of logits. temperature 0 takes the largest logit (the lowest id among equals).
// Otherwise, with w[i] = floor(exp((l[i] - max) / temperature) * 2^40) as exact integers:
//   1. top_k:  keep w[i] >= the k-th largest w                          (k = 0: all)
//   2. top_p:  keep the largest w until their sum reaches top_p * total of step 1  (1: all)
//   3. min_p:  keep w[i] >= min_p * 2^40                                (0: all)
// Values equal to a threshold are all kept. The token drawn is the first i, in order of id, whose
// running sum of kept w exceeds floor(random * total / 2^64). Integer sums make the draw
// independent of the order of summation, hence the same on every run and every grid. Only ids below
// num_candidates take part: a vocabulary may be padded beyond its tokenizer.
struct SamplingBatch {
  Tensor temperature;  // float32 [num_rows], >= 0
  Tensor top_k;        // int32   [num_rows], >= 0
  Tensor top_p;        // float32 [num_rows], (0, 1]
  Tensor min_p;        // float32 [num_rows], [0, 1]
  Tensor random;       // int32   [num_rows, 2], a 64-bit uniform number: low word, high word
  int64_t num_candidates = 0;
};

// The token Operations::sample writes when a row's candidate logits are not all finite.
inline constexpr int32_t kNonFiniteLogits = -1;

// Natural logarithms of probabilities, softmax(logits) over the candidates: of the token that was
// drawn in each row, and of the most probable ones, the largest first, the lower id first among
// equals. Nothing is written for a row without a token (kNonFiniteLogits).
struct LogprobBatch {
  Tensor tokens;               // int32 [num_rows], below num_candidates
  Tensor logprobs;             // float32 [num_rows], of these
  Tensor top_tokens;           // int32 [num_rows, num_top]
  Tensor top_logprobs;         // float32 [num_rows, num_top]
  int64_t num_candidates = 0;  // num_top or more
};

}  // namespace tessera
