#include "tests/kernels/attention/reference_attention.h"

#include <algorithm>
#include <cmath>

#include "tests/kernels/cpu/parallel_for.h"
#include "tests/kernels/for_each_backend.h"

namespace tessera {
namespace {

// Which keys [begin, end) a row of [query_length, num_heads] sees, and where the rows lie.
class Rows {
 public:
  Rows(const ReferenceSequence& sequence, const ReferenceAttentionParams& params)
      : params_(params),
        query_length_(static_cast<int64_t>(sequence.queries.size()) /
                      (params.num_heads * params.head_dim)),
        context_length_(static_cast<int64_t>(sequence.keys.size()) /
                        (params.num_kv_heads * params.head_dim)) {}

  int64_t num_rows() const { return query_length_ * params_.num_heads; }
  int64_t context_length() const { return context_length_; }

  int64_t begin(int64_t row) const {
    if (params_.sliding_window == 0) return 0;
    return std::max<int64_t>(0, position(row) - params_.sliding_window + 1);
  }
  int64_t end(int64_t row) const { return params_.causal ? position(row) + 1 : context_length_; }

  size_t query(int64_t row) const { return static_cast<size_t>(row * params_.head_dim); }
  size_t key(int64_t row, int64_t token) const {
    const int64_t group = params_.num_heads / params_.num_kv_heads;
    const int64_t kv_head = row % params_.num_heads / group;
    return static_cast<size_t>((token * params_.num_kv_heads + kv_head) * params_.head_dim);
  }

 private:
  // Negative for the first of more queries than the context has tokens.
  int64_t position(int64_t row) const {
    return context_length_ - query_length_ + row / params_.num_heads;
  }

  const ReferenceAttentionParams& params_;
  int64_t query_length_, context_length_;
};

}  // namespace

ReferenceAttention reference_attention(const ReferenceSequence& sequence,
                                       const ReferenceAttentionParams& params) {
  const Rows rows(sequence, params);
  const auto head_dim = static_cast<size_t>(params.head_dim);
  Reference out{std::vector<double>(sequence.queries.size()),
                std::vector<double>(sequence.queries.size())};
  std::vector<double> largest_scores(static_cast<size_t>(rows.num_rows()));
  parallel_for(rows.num_rows(), rows.context_length() * params.head_dim, [&](int64_t row) {
    const double* query = sequence.queries.data() + rows.query(row);
    double& largest_score = largest_scores[static_cast<size_t>(row)];
    std::vector<double> scores;
    for (int64_t token = rows.begin(row); token < rows.end(row); ++token) {
      const double* key = sequence.keys.data() + rows.key(row, token);
      double score = 0.0;
      double magnitude = 0.0;
      for (size_t d = 0; d < head_dim; ++d) {
        const double term = query[d] * key[d] * params.scale;
        score += term;
        magnitude += std::abs(term);
      }
      if (params.softcap > 0.0) score = params.softcap * std::tanh(score / params.softcap);
      scores.push_back(score);
      largest_score = std::max(largest_score, magnitude);
    }
    if (scores.empty()) return;  // a row that sees no key stays zero
    const double largest = *std::ranges::max_element(scores);
    double sum = 0.0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    double* values = out.values.data() + rows.query(row);
    double* magnitudes = out.magnitudes.data() + rows.query(row);
    for (int64_t token = rows.begin(row); token < rows.end(row); ++token) {
      const double probability = scores[static_cast<size_t>(token - rows.begin(row))] / sum;
      const double* value = sequence.values.data() + rows.key(row, token);
      for (size_t d = 0; d < head_dim; ++d) {
        values[d] += probability * value[d];
        magnitudes[d] += std::abs(probability * value[d]);
      }
    }
  });
  double largest_score = 0.0;
  for (const double score : largest_scores) largest_score = std::max(largest_score, score);
  return {std::move(out), largest_score};
}

std::vector<double> rounded_attention(const ReferenceSequence& sequence,
                                      const ReferenceAttentionParams& params, DType dtype) {
  const Rows rows(sequence, params);
  const auto head_dim = static_cast<size_t>(params.head_dim);
  const auto scale = static_cast<float>(params.scale);
  const auto softcap = static_cast<float>(params.softcap);
  std::vector<double> out(sequence.queries.size());
  parallel_for(rows.num_rows(), rows.context_length() * params.head_dim, [&](int64_t row) {
    const double* query = sequence.queries.data() + rows.query(row);
    std::vector<double> weights;  // scores at first
    for (int64_t token = rows.begin(row); token < rows.end(row); ++token) {
      const double* key = sequence.keys.data() + rows.key(row, token);
      float score = 0.0f;
      for (size_t d = 0; d < head_dim; ++d) score += static_cast<float>(query[d] * key[d]);
      score *= scale;
      if (softcap > 0.0f) score = softcap * std::tanh(score / softcap);
      weights.push_back(score);
    }
    if (weights.empty()) return;
    const double largest = *std::ranges::max_element(weights);
    float sum = 0.0f;
    for (double& weight : weights) {
      const float exact = std::exp(static_cast<float>(weight - largest));
      sum += exact;
      weight = exact;
    }
    weights = rounded(std::move(weights), dtype);
    std::vector<float> totals(head_dim);
    for (int64_t token = rows.begin(row); token < rows.end(row); ++token) {
      const double weight = weights[static_cast<size_t>(token - rows.begin(row))];
      const double* value = sequence.values.data() + rows.key(row, token);
      for (size_t d = 0; d < head_dim; ++d) totals[d] += static_cast<float>(weight * value[d]);
    }
    for (size_t d = 0; d < head_dim; ++d) out[rows.query(row) + d] = totals[d] / sum;
  });
  return rounded(std::move(out), dtype);
}

}  // namespace tessera
