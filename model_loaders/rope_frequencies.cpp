#include <cmath>
#include <numbers>

#include "kernels/tensor/check.h"
#include "model_loaders/model_config.h"

namespace tessera {
namespace {

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

double scale(double frequency, const RopeScaling& scaling) {
  switch (scaling.kind) {
    case RopeScaling::Kind::kNone:
      return frequency;
    case RopeScaling::Kind::kLinear:
      return frequency / scaling.factor;
    case RopeScaling::Kind::kLlama3:
      return scale_llama3(frequency, scaling);
  }
  throw Error("unknown kind of rope scaling");
}

}  // namespace

std::vector<double> rope_inverse_frequencies(const RopeTable& table, int64_t head_dim) {
  std::vector<double> frequencies;
  for (int64_t j = 0; j < head_dim / 2; ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(head_dim);
    frequencies.push_back(scale(std::pow(table.theta, exponent), table.scaling));
  }
  return frequencies;
}

}  // namespace tessera
