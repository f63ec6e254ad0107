#include "model_loaders/rope_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace tessera {
namespace {

// Of a head all of whose elements turn.
std::vector<double> frequencies_of(const RopeTable& table, int64_t head_dim) {
  return rope_values(table, head_dim, head_dim, 1).inverse_frequencies;
}

TEST(RopeTable, AreAGeometricSeries) {
  const std::vector<double> frequencies = frequencies_of({.theta = 10000.0}, 8);
  ASSERT_EQ(frequencies.size(), 4u);
  EXPECT_DOUBLE_EQ(frequencies[0], 1.0);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.1);
  EXPECT_DOUBLE_EQ(frequencies[2], 0.01);
  EXPECT_DOUBLE_EQ(frequencies[3], 0.001);
}

TEST(RopeTable, LinearDividesAll) {
  const RopeTable table{.theta = 100.0,
                        .scaling = {.kind = RopeScaling::Kind::kLinear, .factor = 4.0}};
  const std::vector<double> frequencies = frequencies_of(table, 4);
  EXPECT_DOUBLE_EQ(frequencies[0], 0.25);
  EXPECT_DOUBLE_EQ(frequencies[1], 0.025);
}

constexpr RopeTable kLlama31 = {.theta = 500000.0,
                                .scaling = {.kind = RopeScaling::Kind::kLlama3,
                                            .factor = 8.0,
                                            .low_freq_factor = 1.0,
                                            .high_freq_factor = 4.0,
                                            .original_max_position_embeddings = 8192}};

// Wavelengths 2 pi theta^(j / 64) reach 8192 / 4 tokens at j = 28.2 and 8192 tokens at j = 34.98:
// solve for j with ln(500000) / 64 = 0.20504.
TEST(RopeTable, Llama3KeepsShortWavesAndStretchesLongOnes) {
  const std::vector<double> frequencies = frequencies_of(kLlama31, 128);
  ASSERT_EQ(frequencies.size(), 64u);
  for (int j = 0; j < 64; ++j) {
    const double base = std::exp(-j * std::log(500000.0) / 64.0);
    const double ratio = frequencies[static_cast<size_t>(j)] / base;
    if (j <= 28) {
      EXPECT_NEAR(ratio, 1.0, 1e-12) << j;
    } else if (j >= 35) {
      EXPECT_NEAR(ratio, 0.125, 1e-12) << j;
    } else {
      EXPECT_TRUE(ratio > 0.125 && ratio < 1.0) << j << " " << ratio;
    }
  }
}

// Where 8192 / wavelength is 2.5, in the middle of 1 and 4, the two ends are mixed in equal parts.
TEST(RopeTable, Llama3BlendsInBetween) {
  RopeTable table = kLlama31;
  const double wavelength = 8192 / 2.5;
  const double frequency = 2.0 * std::numbers::pi / wavelength;
  table.theta = 1.0 / (frequency * frequency);  // theta^(-2 / 4) is the frequency
  const std::vector<double> frequencies = frequencies_of(table, 4);
  EXPECT_NEAR(frequencies[1], (0.5 / 8.0 + 0.5) * frequency, 1e-15);
}

TEST(RopeTable, Llama3IsContinuousAtTheBandEdges) {
  for (const double periods : {1.0, 4.0}) {
    std::vector<double> around;
    for (const double nudge : {1.0 - 1e-9, 1.0 + 1e-9}) {
      RopeTable table = kLlama31;
      const double frequency = 2.0 * std::numbers::pi * periods / 8192 * nudge;
      table.theta = 1.0 / (frequency * frequency);
      around.push_back(frequencies_of(table, 4)[1]);
    }
    EXPECT_NEAR(around[0], around[1], 1e-10) << periods;
  }
}

}  // namespace
}  // namespace tessera
