#include "model_loaders/rope_table.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "kernels/tensor/check.h"

namespace tessera {
namespace {

// theta^(-2j / dim) for the first `count` j.
std::vector<double> base_frequencies(double theta, int64_t dim, int64_t count) {
  std::vector<double> frequencies;
  for (int64_t j = 0; j < count; ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(dim);
    frequencies.push_back(std::pow(theta, exponent));
  }
  return frequencies;
}

// Llama 3.1: wavelengths (in tokens) longer than the pre-training context are stretched by the
// whole factor, those that fit high_freq_factor times are kept, in between is a linear blend.
double scale_llama3(double frequency, const RopeScaling& scaling) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  if (wavelength < original / scaling.high_freq_factor) return frequency;
  if (wavelength > original / scaling.low_freq_factor) return frequency / scaling.factor;
  const double kept = (original / wavelength - scaling.low_freq_factor) /
                      (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0 - kept) * frequency / scaling.factor + kept * frequency;
}

// The base with which the longest wave fits into `context_length` as well as theta's did into the
// original length.
double dynamic_theta(const RopeTable& table, int64_t dim, int64_t context_length) {
  const RopeScaling& scaling = table.scaling;
  const auto original = static_cast<double>(scaling.original_max_position_embeddings);
  const double length = std::max(static_cast<double>(context_length), original);
  const double growth = scaling.factor * length / original - (scaling.factor - 1.0);
  return table.theta * std::pow(growth, static_cast<double>(dim) / static_cast<double>(dim - 2));
}

// The index of the frequency that turns `turns` times within the original length.
double yarn_index(const RopeTable& table, int64_t dim, double turns) {
  const auto original = static_cast<double>(table.scaling.original_max_position_embeddings);
  return static_cast<double>(dim) * std::log(original / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(table.theta));
}

void scale_yarn(std::vector<double>& frequencies, const RopeTable& table, int64_t dim) {
  const RopeScaling& scaling = table.scaling;
  double low = yarn_index(table, dim, scaling.beta_fast);
  double high = yarn_index(table, dim, scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(dim - 1));
  if (low == high) high += 0.001;  // a ramp needs a width
  for (size_t j = 0; j < frequencies.size(); ++j) {
    const double stretched = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    frequencies[j] =
        frequencies[j] / scaling.factor * stretched + frequencies[j] * (1.0 - stretched);
  }
}

void scale_longrope(std::vector<double>& frequencies, const RopeScaling& scaling,
                    int64_t context_length) {
  const bool is_long = context_length > scaling.original_max_position_embeddings;
  const std::vector<double>& factors = is_long ? scaling.long_factors : scaling.short_factors;
  for (size_t j = 0; j < frequencies.size(); ++j) frequencies[j] /= factors.at(j);
}

// Of the pairs that turn.
std::vector<double> scaled_frequencies(const RopeTable& table, int64_t dim,
                                       int64_t context_length) {
  const RopeScaling& scaling = table.scaling;
  const int64_t count = dim / 2;
  std::vector<double> frequencies = base_frequencies(table.theta, dim, count);
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return frequencies;
    case RopeScaling::Kind::kLinear:
      for (double& frequency : frequencies) frequency /= scaling.factor;
      return frequencies;
    case RopeScaling::Kind::kDynamic:
      return base_frequencies(dynamic_theta(table, dim, context_length), dim, count);
    case RopeScaling::Kind::kYarn:
      scale_yarn(frequencies, table, dim);
      return frequencies;
    case RopeScaling::Kind::kLongRope:
      scale_longrope(frequencies, scaling, context_length);
      return frequencies;
    case RopeScaling::Kind::kLlama3:
      for (double& frequency : frequencies) frequency = scale_llama3(frequency, scaling);
      return frequencies;
    case RopeScaling::Kind::kProportional: {
      const auto rotated =
          static_cast<int64_t>(scaling.rotated_fraction * static_cast<double>(dim)) / 2;
      for (double& frequency : frequencies) frequency /= scaling.factor;
      std::fill(frequencies.begin() + rotated, frequencies.end(), 0.0);
      return frequencies;
    }
  }
  throw Error("unknown kind of rope scaling");
}

}  // namespace

RopeValues rope_values(const RopeTable& table, int64_t head_dim, int64_t rotary_dim,
                       int64_t context_length) {
  const auto pairs = static_cast<size_t>(head_dim / 2);
  RopeValues values{.inverse_frequencies = scaled_frequencies(table, rotary_dim, context_length),
                    .amplitudes = {}};
  values.amplitudes.assign(values.inverse_frequencies.size(), table.scaling.attention_factor);
  values.inverse_frequencies.resize(pairs, 0.0);
  values.amplitudes.resize(pairs, 1.0);
  return values;
}

double yarn_attention_factor(double factor, double scale) {
  return factor <= 1.0 ? 1.0 : 0.1 * scale * std::log(factor) + 1.0;
}

const char* rope_scaling_name(RopeScaling::Kind kind) {
  switch (kind) {
    case RopeScaling::Kind::kNone:
      return "none";
    case RopeScaling::Kind::kLinear:
      return "linear";
    case RopeScaling::Kind::kDynamic:
      return "dynamic";
    case RopeScaling::Kind::kYarn:
      return "yarn";
    case RopeScaling::Kind::kLongRope:
      return "longrope";
    case RopeScaling::Kind::kLlama3:
      return "llama3";
    case RopeScaling::Kind::kProportional:
      return "proportional";
  }
  return "unknown";
}

}  // namespace tessera
