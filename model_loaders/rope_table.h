// The rotary embedding of a layer: what config.json says about it, and the numbers that kernels
// take.
#pragma once

#include <cstdint>
#include <vector>

namespace tessera {

// How the rotary frequencies are stretched for contexts longer than the pre-training length.
struct RopeScaling {
  enum class Kind : uint8_t {
    kNone,
    kLinear,    // f / factor
    kDynamic,   // theta grows with the context (NTK)
    kYarn,      // short waves stay, long ones are stretched, between them a ramp; Peng et al. 2023
    kLongRope,  // a factor for every frequency; Ding et al. 2024
    kLlama3,    // three wavelength bands; Llama 3.1 model card
    kProportional,  // the first of the frequencies turn, the others are 0
  };
  Kind kind = Kind::kNone;
  double factor = 1.0;
  // Tokens. For kDynamic it is max_position_embeddings, beyond which theta grows.
  int64_t original_max_position_embeddings = 0;
  double low_freq_factor = 1.0;  // kLlama3
  double high_freq_factor = 4.0;
  double beta_fast = 32.0;  // kYarn: turns within the original length where the ramp begins
  double beta_slow = 1.0;   // and where it ends
  bool truncate = true;     // the ramp begins and ends at whole indices
  std::vector<double> short_factors;  // kLongRope, [rotary_dim / 2]: up to the original length
  std::vector<double> long_factors;   // [rotary_dim / 2]: beyond it
  double rotated_fraction = 1.0;      // kProportional
  // What cosines and sines are multiplied by: for kYarn and kLongRope; 1 for all others.
  double attention_factor = 1.0;

  bool operator==(const RopeScaling&) const = default;
};

// What gives the rotary frequencies of a layer.
struct RopeTable {
  double theta = 10000.0;
  RopeScaling scaling;

  bool operator==(const RopeTable&) const = default;
};

// Each [head_dim / 2], float64: element j is for the elements j and j + head_dim / 2 of a head.
struct RopeValues {
  std::vector<double> inverse_frequencies;  // angle = position * value
  std::vector<double> amplitudes;           // what its cosine and its sine are multiplied by
};

// The first rotary_dim / 2 pairs turn, the others (of models that turn a part of each head) have
// frequency 0 and amplitude 1: they stay as they are. Base: theta^(-2j / rotary_dim); scaling as in
// the kinds. rotary_dim is even and in 2..head_dim.
//
// Two kinds depend on a length. transformers takes that of the present sequence, so that the keys
// of its first tokens and those of its last are turned by different frequencies. Here it is
// `context_length`, the number of tokens for which the model is loaded: one table for all tokens of
// all sequences.
RopeValues rope_values(const RopeTable& table, int64_t head_dim, int64_t rotary_dim,
                       int64_t context_length);

// What YaRN multiplies cosines and sines by where it stretches a context `factor` times, so that
// attention over more tokens stays as sharp: 0.1 * scale * ln(factor) + 1, and 1 where nothing is
// stretched. Peng et al. 2023 found it for a scale of 1 (section 3.4, as the square root of 1 / t).
double yarn_attention_factor(double factor, double scale = 1.0);

// "none", "linear", ...: the kind as config.json spells it.
const char* rope_scaling_name(RopeScaling::Kind kind);

}  // namespace tessera
