#include "tests/kernels/reference_ops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>

namespace tessera {
namespace {

Reference empty_reference(size_t size) {
  return {std::vector<double>(size, 0.0), std::vector<double>(size, 0.0)};
}

void add_term(Reference& reference, size_t i, double term) {
  reference.values[i] += term;
  reference.magnitudes[i] += std::abs(term);
}

}  // namespace

std::vector<double> reference_rows(const std::vector<double>& x, int64_t row_size,
                                   const std::vector<int32_t>& rows) {
  std::vector<double> out;
  for (const int32_t row : rows) {
    const auto begin = x.begin() + row * row_size;
    out.insert(out.end(), begin, begin + row_size);
  }
  return out;
}

Reference reference_rms_norm(const std::vector<double>& x, const std::vector<double>& weight,
                             double epsilon) {
  Reference out = empty_reference(x.size());
  const size_t hidden_size = weight.size();
  for (size_t begin = 0; begin < x.size(); begin += hidden_size) {
    double sum = 0.0;
    for (size_t i = 0; i < hidden_size; ++i) sum += x[begin + i] * x[begin + i];
    const double root = std::sqrt(sum / static_cast<double>(hidden_size) + epsilon);
    for (size_t i = 0; i < hidden_size; ++i) {
      add_term(out, begin + i, x[begin + i] / root * weight[i]);
    }
  }
  return out;
}

Reference reference_layer_norm(const std::vector<double>& x, const std::vector<double>& weight,
                               double epsilon) {
  Reference out = empty_reference(x.size());
  const size_t hidden_size = weight.size();
  const auto size = static_cast<double>(hidden_size);
  for (size_t begin = 0; begin < x.size(); begin += hidden_size) {
    double mean = 0.0;
    double mean_magnitude = 0.0;
    for (size_t i = 0; i < hidden_size; ++i) {
      mean += x[begin + i] / size;
      mean_magnitude += std::abs(x[begin + i]) / size;
    }
    double variance = 0.0;
    for (size_t i = 0; i < hidden_size; ++i) variance += std::pow(x[begin + i] - mean, 2) / size;
    const double factor = 1.0 / std::sqrt(variance + epsilon);
    for (size_t i = 0; i < hidden_size; ++i) {
      out.values[begin + i] = (x[begin + i] - mean) * factor * weight[i];
      out.magnitudes[begin + i] =
          (std::abs(x[begin + i]) + mean_magnitude) * factor * std::abs(weight[i]);
    }
  }
  return out;
}

void add_bias(Reference& out, const std::vector<double>& bias) {
  for (size_t i = 0; i < out.values.size(); ++i) add_term(out, i, bias[i % bias.size()]);
}

std::vector<double> reference_qk_norm(const std::vector<double>& heads,
                                      const std::vector<double>& weight, int64_t head_dim,
                                      QkNorm kind, double epsilon) {
  switch (kind) {
    case QkNorm::kNone:
      return heads;
    case QkNorm::kPerHead:
    case QkNorm::kWholeProjection:  // which has as many weights as there are elements
      return reference_rms_norm(heads, weight, epsilon).values;
    case QkNorm::kLayerNormPerHead:
      break;
  }
  std::vector<double> out;
  for (auto begin = heads.begin(); begin != heads.end(); begin += head_dim) {
    const auto weights = weight.begin() + (begin - heads.begin());
    const std::vector<double> head =
        reference_layer_norm({begin, begin + head_dim}, {weights, weights + head_dim}, epsilon)
            .values;
    out.insert(out.end(), head.begin(), head.end());
  }
  return out;
}

Reference reference_linear(const std::vector<double>& x, const std::vector<double>& weight,
                           int64_t in_features, const std::vector<double>& initial) {
  const auto length = static_cast<size_t>(in_features);
  const size_t num_tokens = x.size() / length;
  const size_t out_features = weight.size() / length;
  Reference out = empty_reference(num_tokens * out_features);
  // Some tokens side by side, so that no sum waits for the sum before; each has its terms in order.
  constexpr size_t kTogether = 8;
  std::vector<double> columns(length * kTogether);
  for (size_t first = 0; first < num_tokens; first += kTogether) {
    const size_t count = std::min(kTogether, num_tokens - first);
    for (size_t i = 0; i < length; ++i) {
      for (size_t t = 0; t < count; ++t) columns[i * kTogether + t] = x[(first + t) * length + i];
    }
    for (size_t o = 0; o < out_features; ++o) {
      std::array<double, kTogether> values{}, magnitudes{};
      for (size_t i = 0; i < length; ++i) {
        for (size_t t = 0; t < kTogether; ++t) {
          const double term = columns[i * kTogether + t] * weight[o * length + i];
          values[t] += term;
          magnitudes[t] += std::abs(term);
        }
      }
      for (size_t t = 0; t < count; ++t) {
        out.values[(first + t) * out_features + o] = values[t];
        out.magnitudes[(first + t) * out_features + o] = magnitudes[t];
      }
    }
  }
  for (size_t i = 0; i < initial.size(); ++i) add_term(out, i, initial[i]);
  return out;
}

Reference reference_rope(const std::vector<double>& head, int32_t position,
                         const std::vector<double>& rope_table) {
  Reference out = empty_reference(head.size());
  const size_t half = head.size() / 2;
  for (size_t j = 0; j < half; ++j) {
    const double angle = position * rope_table[j];
    const double cosine = rope_table[half + j] * std::cos(angle);
    const double sine = rope_table[half + j] * std::sin(angle);
    add_term(out, j, head[j] * cosine);
    add_term(out, j, -head[j + half] * sine);
    add_term(out, j + half, head[j + half] * cosine);
    add_term(out, j + half, head[j] * sine);
    // Sine and cosine of an angle known to float32 are wrong by the same amount near 0 and 1.
    for (const size_t i : {j, j + half}) {
      out.magnitudes[i] =
          std::abs(rope_table[half + j]) * (std::abs(head[j]) + std::abs(head[j + half]));
    }
  }
  return out;
}

namespace {

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::kSilu:
      return x / (1.0 + std::exp(-x));
    case Activation::kGeluTanh: {
      // 1 + tanh(y) = 2 / (1 + exp(-2 y)), whose digits do not cancel where y is far below 0.
      const double y = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1.0 + std::exp(-2.0 * y));
    }
  }
  return x;
}

}  // namespace

Reference reference_activate_mul(const std::vector<double>& gate_up, int64_t intermediate_size,
                                 Activation activation) {
  const auto size = static_cast<size_t>(intermediate_size);
  Reference out = empty_reference(gate_up.size() / 2);
  for (size_t i = 0; i < out.values.size(); ++i) {
    const size_t token = i / size;
    const double gate = gate_up[2 * token * size + i % size];
    const double up = gate_up[(2 * token + 1) * size + i % size];
    add_term(out, i, activated(gate, activation) * up);
  }
  return out;
}

Reference reference_gated_linear(const std::vector<double>& x, const std::vector<double>& weight,
                                 int64_t in_features, Activation activation) {
  const Reference both = reference_linear(x, weight, in_features);
  const size_t size = weight.size() / static_cast<size_t>(in_features) / 2;
  Reference out = reference_activate_mul(both.values, static_cast<int64_t>(size), activation);
  // |silu'| <= 1.1, |gelu'| <= 1.13: errors of the gate count with `up`, errors of `up` with the
  // activation.
  for (size_t i = 0; i < out.values.size(); ++i) {
    const size_t gate = i / size * 2 * size + i % size;
    const size_t up = gate + size;
    out.magnitudes[i] = 1.13 * both.magnitudes[gate] * std::abs(both.values[up]) +
                        std::abs(both.values[gate]) * both.magnitudes[up];
  }
  return out;
}

Reference reference_penalize(const std::vector<double>& logits,
                             const ReferencePenalties& penalties) {
  Reference out = empty_reference(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) add_term(out, i, logits[i]);
  for (size_t i = 0; i < penalties.tokens.size(); ++i) {
    const auto token = static_cast<size_t>(penalties.tokens[i]);
    const double logit = logits[token];
    out.values[token] = 0.0;
    out.magnitudes[token] = 0.0;
    add_term(out, token, logit > 0.0 ? logit / penalties.repetition : logit * penalties.repetition);
    add_term(out, token, -penalties.frequency * penalties.counts[i]);
    if (penalties.counts[i] > 0) add_term(out, token, -penalties.presence);
  }
  return out;
}

int32_t ReferenceDistribution::draw(uint64_t random, double shift) const {
  using Wide = unsigned __int128;
  const auto target = static_cast<int64_t>((static_cast<Wide>(random) * total) >> 64);
  const auto moved = static_cast<int64_t>(shift * static_cast<double>(total));
  const auto place = static_cast<uint64_t>(
      std::clamp<int64_t>(target + moved, 0, static_cast<int64_t>(total) - 1));
  uint64_t sum = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    sum += weights[i];
    if (sum > place) return tokens[i];
  }
  return kNonFiniteLogits;
}

ReferenceDistribution reference_distribution(const std::vector<float>& logits,
                                             int64_t num_candidates,
                                             const ReferenceSampling& sampling) {
  const auto size = static_cast<size_t>(num_candidates);
  const double largest = *std::max_element(logits.begin(), logits.begin() + num_candidates);
  std::vector<uint64_t> weights(size);
  for (size_t i = 0; i < size; ++i) {
    const double exponent = (logits[i] - largest) / static_cast<double>(sampling.temperature);
    weights[i] = static_cast<uint64_t>(std::floor(std::exp(exponent) * 0x1p40));
  }
  std::vector<uint64_t> sorted = weights;
  std::ranges::sort(sorted, std::greater<>());
  ReferenceDistribution result;
  const auto note_margin = [&](double value, double threshold) {
    result.margin = std::min(result.margin, std::abs(value - threshold) / threshold);
  };

  // Equal logits have equal weights everywhere, so top_k is exact unless rounding merges two.
  uint64_t threshold = 0;
  if (sampling.top_k > 0 && static_cast<size_t>(sampling.top_k) < size) {
    threshold = sorted[static_cast<size_t>(sampling.top_k) - 1];
    for (const uint64_t weight : sorted) {
      if (weight != threshold)
        note_margin(static_cast<double>(weight), static_cast<double>(threshold));
    }
  }
  uint64_t total = 0;
  for (const uint64_t weight : sorted) total += weight >= threshold ? weight : 0;
  if (sampling.top_p < 1.0f) {
    const long double wanted = static_cast<long double>(sampling.top_p) * total;
    uint64_t sum = 0;
    for (size_t i = 0; i < size; ++i) {
      sum += sorted[i];
      if (i + 1 < size && sorted[i + 1] == sorted[i]) continue;
      note_margin(static_cast<double>(sum), static_cast<double>(wanted));
      if (sum >= wanted) {
        threshold = std::max(threshold, sorted[i]);
        break;
      }
    }
  }
  if (sampling.min_p > 0.0f) {
    const double wanted = sampling.min_p * 0x1p40;
    for (const uint64_t weight : sorted) {
      // The largest weight is exp(0), which is exact.
      if (weight != sorted.front()) note_margin(static_cast<double>(weight), wanted);
    }
    threshold = std::max(threshold, static_cast<uint64_t>(std::ceil(wanted)));
  }
  for (size_t i = 0; i < size; ++i) {
    if (weights[i] < threshold || weights[i] == 0) continue;
    result.tokens.push_back(static_cast<int32_t>(i));
    result.weights.push_back(weights[i]);
    result.total += weights[i];
  }
  return result;
}

int32_t reference_greedy(const std::vector<float>& logits, int64_t num_candidates) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.begin() + num_candidates) -
                              logits.begin());
}

}  // namespace tessera
