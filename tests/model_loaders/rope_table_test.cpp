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

const RopeTable kLlama31 = {.theta = 500000.0,
                            .scaling = {.kind = RopeScaling::Kind::kLlama3,
                                        .factor = 8.0,
                                        .original_max_position_embeddings = 8192,
                                        .low_freq_factor = 1.0,
                                        .high_freq_factor = 4.0}};

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

// What transformers 5.23 computes (modeling_rope_utils.py), in float32.
void expect_values(const RopeValues& values, const std::vector<double>& frequencies,
                   double amplitude) {
  ASSERT_EQ(values.inverse_frequencies.size(), frequencies.size());
  for (size_t j = 0; j < frequencies.size(); ++j) {
    EXPECT_NEAR(values.inverse_frequencies[j], frequencies[j], 2e-7 * frequencies[j]) << j;
    EXPECT_NEAR(values.amplitudes[j], amplitude, 1e-8) << j;
  }
}

TEST(RopeTable, DynamicGrowsWithTheContext) {
  const RopeTable table{.theta = 10000.0,
                        .scaling = {.kind = RopeScaling::Kind::kDynamic,
                                    .factor = 4.0,
                                    .original_max_position_embeddings = 4096}};
  const std::vector<double> base = {1.0,  0.316227764, 0.100000001,   0.0316227786,
                                    0.01, 0.003162278, 0.00100000005, 0.000316227757};
  expect_values(rope_values(table, 16, 16, 1000), base, 1.0);
  expect_values(rope_values(table, 16, 16, 4096), base, 1.0);
  expect_values(rope_values(table, 16, 16, 10000),
                {1.0, 0.240649298, 0.0579120778, 0.013936501, 0.00335380924, 0.000807091768,
                 0.000194226057, 4.67403661e-05},
                1.0);
}

TEST(RopeTable, YarnStretchesLongWaves) {
  const RopeTable table{.theta = 10000.0,
                        .scaling = {.kind = RopeScaling::Kind::kYarn,
                                    .factor = 4.0,
                                    .original_max_position_embeddings = 1024,
                                    .attention_factor = 1.138629436}};
  expect_values(rope_values(table, 16, 16, 4096),
                {1.0, 0.316227764, 0.0812500045, 0.0197642371, 0.00437500002, 0.000790569466,
                 0.000250000012, 7.90569466e-05},
                1.138629436);
}

TEST(RopeTable, YarnWithoutWholeIndices) {
  const RopeTable table{.theta = 10000.0,
                        .scaling = {.kind = RopeScaling::Kind::kYarn,
                                    .factor = 8.0,
                                    .original_max_position_embeddings = 512,
                                    .beta_fast = 16.0,
                                    .beta_slow = 2.0,
                                    .truncate = false}};
  expect_values(rope_values(table, 16, 16, 4096),
                {1.0, 0.316227764, 0.0716084614, 0.00732499827, 0.00124999997, 0.000395284733,
                 0.000125000006, 3.95284733e-05},
                1.0);
}

// 12 of 16 elements turn, with a factor for each pair of them.
TEST(RopeTable, LongRopeChoosesFactorsByTheContext) {
  const RopeTable table{.theta = 10000.0,
                        .scaling = {.kind = RopeScaling::Kind::kLongRope,
                                    .factor = 8.0,
                                    .original_max_position_embeddings = 512,
                                    .short_factors = {1, 1.5, 2, 2.5, 3, 3.5},
                                    .long_factors = {2, 3, 4, 5, 6, 7},
                                    .attention_factor = 1.25}};
  const RopeValues brief = rope_values(table, 16, 12, 512);
  const RopeValues full = rope_values(table, 16, 12, 513);
  const std::vector<double> short_frequencies = {1.0,           0.14362897,     0.023207942,
                                                 0.00400000019, 0.000718144758, 0.000132616842};
  const std::vector<double> long_frequencies = {0.5,           0.0718144849,   0.011603971,
                                                0.00200000009, 0.000359072379, 6.63084211e-05};
  ASSERT_EQ(brief.inverse_frequencies.size(), 8u);
  for (size_t j = 0; j < 6; ++j) {
    EXPECT_NEAR(brief.inverse_frequencies[j], short_frequencies[j], 2e-7 * short_frequencies[j]);
    EXPECT_NEAR(full.inverse_frequencies[j], long_frequencies[j], 2e-7 * long_frequencies[j]);
    EXPECT_EQ(full.amplitudes[j], 1.25);
  }
  for (size_t j = 6; j < 8; ++j) {  // what does not turn is not scaled either
    EXPECT_EQ(full.inverse_frequencies[j], 0.0);
    EXPECT_EQ(full.amplitudes[j], 1.0);
  }
}

TEST(RopeTable, ProportionalTurnsTheFirstPairs) {
  const RopeTable table{
      .theta = 10000.0,
      .scaling = {
          .kind = RopeScaling::Kind::kProportional, .factor = 2.0, .rotated_fraction = 0.25}};
  expect_values(rope_values(table, 16, 16, 1), {0.5, 0.158113882, 0, 0, 0, 0, 0, 0}, 1.0);
}

}  // namespace
}  // namespace tessera
