// Every operation but attention in double precision, written to be read: no tiles, no
// tricks, and no code shared with the devices. Tensors are row-major vectors; shapes are as in
// kernels/operations.h.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/block_spec.h"
#include "kernels/sampling_params.h"
#include "tests/kernels/tolerance.h"

namespace tessera {

// What tests of norms add to the mean square.
inline constexpr float kNormEpsilon = 1e-5f;

// rows[i] of x [any, row_size]. Both embed and gather_rows.
std::vector<double> reference_rows(const std::vector<double>& x, int64_t row_size,
                                   const std::vector<int32_t>& rows);

Reference reference_rms_norm(const std::vector<double>& x, const std::vector<double>& weight,
                             double epsilon);

Reference reference_layer_norm(const std::vector<double>& x, const std::vector<double>& weight,
                               double epsilon);

// Heads of a token, all its queries or all its keys, normalised as `kind` says; `weight` is theirs.
std::vector<double> reference_qk_norm(const std::vector<double>& heads,
                                      const std::vector<double>& weight, int64_t head_dim,
                                      QkNorm kind, double epsilon);

// out[t][o] = initial[t][o] + sum over i of x[t][i] * weight[o][i]; initial may be empty.
Reference reference_linear(const std::vector<double>& x, const std::vector<double>& weight,
                           int64_t in_features, const std::vector<double>& initial = {});

// Adds to every row, of as many elements as the bias has.
void add_bias(Reference& out, const std::vector<double>& bias);

// Rotates one head at `position`: pairs (j, j + head_dim / 2) by position * rope_table[j], times
// rope_table[head_dim / 2 + j].
Reference reference_rope(const std::vector<double>& head, int32_t position,
                         const std::vector<double>& rope_table);

Reference reference_activate_mul(const std::vector<double>& gate_up, int64_t intermediate_size,
                                 Activation activation = Activation::kSilu);

// reference_activate_mul() of reference_linear(). The magnitudes bound what errors of both products
// do to the results.
//   weight [2 * intermediate_size, in_features], [gate | up]
Reference reference_gated_linear(const std::vector<double>& x, const std::vector<double>& weight,
                                 int64_t in_features, Activation activation);

// Token penalties of one sequence, applied in place.
struct ReferencePenalties {
  std::vector<int32_t> tokens;
  std::vector<int32_t> counts;
  double repetition = 1.0;
  double frequency = 0.0;
  double presence = 0.0;
};
Reference reference_penalize(const std::vector<double>& logits,
                             const ReferencePenalties& penalties);

// How one sequence draws; see SamplingBatch.
struct ReferenceSampling {
  float temperature = 0.0f;
  int32_t top_k = 0;
  float top_p = 1.0f;
  float min_p = 0.0f;
};

// The candidates that a draw chooses from, in order of id, with integer weights.
struct ReferenceDistribution {
  std::vector<int32_t> tokens;
  std::vector<uint64_t> weights;
  uint64_t total = 0;
  // Smallest relative distance between a weight, or a sum of weights, and a threshold it was
  // compared with: below the error of a backend's exp(), the set kept may rightly differ.
  double margin = 1.0;

  // The token at floor(random * total / 2^64), moved by `shift` as a share of the total (and kept
  // within it).
  int32_t draw(uint64_t random, double shift = 0.0) const;
};
ReferenceDistribution reference_distribution(const std::vector<float>& logits,
                                             int64_t num_candidates,
                                             const ReferenceSampling& sampling);

// temperature 0: the largest of the candidates, the lowest id among equals.
int32_t reference_greedy(const std::vector<float>& logits, int64_t num_candidates);

}  // namespace tessera
