#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// A cluster of 8 blocks shares them: with empty shares, one token short or over, and more than the
// blocks keep (262,144). Blocks are 1024 threads wide.
constexpr int64_t kVocabSizes[] = {1,    7,     8,     9,      1000,   1023,   8191,  8192,
                                   8193, 32000, 32001, 128256, 131071, 262144, 262152};

// Relative error of a weight when exp() is computed in float32: its argument, at most 28 where
// weights are not zero, is rounded two or three times. Hence the error of any sum of weights, and
// two things follow for a test that must pass on every device:
//   - a threshold closer than this to a weight or a sum would leave open which tokens are kept;
//     inputs are drawn again until there is none (the reference reports the margin);
//   - a draw may land on the neighbour when its place is this close to the edge of a token; every
//     token between place - error and place + error is accepted.
constexpr double kWeightError = 28.0 * 0x1p-22;
constexpr double kMargin = 2.0 * kWeightError;  // both sides of a comparison may err

struct Draw {
  std::vector<float> logits;
  ReferenceSampling sampling;
  uint64_t random = 0;
};

// Multiples of 1/64: distinct logits have clearly distinct weights, equal ones are frequent.
std::vector<float> random_logits(RandomValues& random, int64_t vocab_size, double deviation) {
  std::vector<float> logits;
  for (const double value : random.normal(vocab_size, deviation)) {
    logits.push_back(static_cast<float>(std::round(value * 64.0) / 64.0));
  }
  return logits;
}

class SampleTest : public BackendTest {
 protected:
  // All draws as one batch; they have equally many logits. num_candidates 0: all of them.
  std::vector<int32_t> sample(const std::vector<Draw>& draws, int64_t num_candidates = 0) const {
    const auto num_sequences = static_cast<int64_t>(draws.size());
    const auto vocab_size = static_cast<int64_t>(draws[0].logits.size());
    std::vector<double> logits, temperature, top_p, min_p;
    std::vector<int32_t> top_k, random;
    for (const Draw& draw : draws) {
      logits.insert(logits.end(), draw.logits.begin(), draw.logits.end());
      temperature.push_back(draw.sampling.temperature);
      top_k.push_back(draw.sampling.top_k);
      top_p.push_back(draw.sampling.top_p);
      min_p.push_back(draw.sampling.min_p);
      random.push_back(static_cast<int32_t>(draw.random));
      random.push_back(static_cast<int32_t>(draw.random >> 32));
    }
    const DeviceTensor tokens = poisoned(backend(), DType::kInt32, {num_sequences});
    operations().sample(tokens, floats(logits, {num_sequences, vocab_size}),
                        {.temperature = floats(temperature, {num_sequences}),
                         .top_k = integers(top_k, {num_sequences}),
                         .top_p = floats(top_p, {num_sequences}),
                         .min_p = floats(min_p, {num_sequences}),
                         .random = integers(random, {num_sequences, 2}),
                         .num_candidates = num_candidates == 0 ? vocab_size : num_candidates});
    std::vector<int32_t> result;
    for (const double token : host(tokens)) result.push_back(static_cast<int32_t>(token));
    return result;
  }
};

TEST_P(SampleTest, GreedyTakesTheLowestIdAmongEquals) {
  RandomValues random(1);
  for (const int64_t vocab_size : kVocabSizes) {
    std::vector<Draw> draws;
    for (int i = 0; i < 6; ++i) {
      // Everything but the temperature is to be ignored.
      Draw draw{random_logits(random, vocab_size, 2.0), {0.0f, 1 + i, 0.5f, 0.1f}, random.bits()};
      const float largest = *std::ranges::max_element(draw.logits);
      for (int tie = 0; tie < i; ++tie) {
        draw.logits[static_cast<size_t>(random.integer(0, vocab_size - 1))] = largest;
      }
      draws.push_back(draw);
    }
    const std::vector<int32_t> tokens = sample(draws);
    for (size_t i = 0; i < draws.size(); ++i) {
      EXPECT_EQ(tokens[i], reference_greedy(draws[i].logits, vocab_size)) << vocab_size;
    }
  }
}

TEST_P(SampleTest, GreedyHandlesExtremeLogits) {
  const float largest = std::numeric_limits<float>::max();
  EXPECT_EQ(sample({{{-largest, -largest, largest, largest}, {}},
                    {{-largest, -largest, -largest, -largest}, {}},
                    {{-3.0f, -2.0f, -2.0f, -7.0f}, {}},
                    {{-0.0f, 0.0f, -1.0f, 0.0f}, {}}}),
            (std::vector<int32_t>{2, 0, 1, 0}));
}

TEST_P(SampleTest, NonFiniteCandidatesAreReportedPerSequence) {
  for (const int64_t vocab_size : {int64_t{1}, int64_t{7}, int64_t{32000}}) {
    for (const float bad : {kNan, -kNan, kInfinity, -kInfinity}) {
      for (const float temperature : {0.0f, 1.0f}) {
        for (const int64_t place : {int64_t{0}, vocab_size / 2, vocab_size - 1}) {
          std::vector<float> good(static_cast<size_t>(vocab_size), -100.0f);
          good.back() = 100.0f;
          std::vector<float> damaged = good;
          damaged[static_cast<size_t>(place)] = bad;
          const auto last = static_cast<int32_t>(vocab_size - 1);
          EXPECT_EQ(
              sample({{good, {temperature}}, {damaged, {temperature}}, {good, {temperature}}}),
              (std::vector<int32_t>{last, kNonFiniteLogits, last}))
              << bad << " at " << place << " of " << vocab_size << ", temperature " << temperature;
        }
      }
    }
  }
}

TEST_P(SampleTest, IgnoresLogitsBeyondTheCandidates) {
  for (const float temperature : {0.0f, 1.0f}) {
    for (const float beyond : {kNan, kInfinity, 1000.0f}) {
      for (const int64_t num_candidates : {1, 5, 1000}) {
        std::vector<float> logits(1024, 0.0f);
        for (size_t i = static_cast<size_t>(num_candidates); i < 1024; ++i) logits[i] = beyond;
        logits[static_cast<size_t>(num_candidates - 1)] = 50.0f;
        EXPECT_EQ(sample({{logits, {temperature}, ~uint64_t{0}}}, num_candidates)[0],
                  num_candidates - 1);
      }
    }
  }
}

// Every combination of settings over every vocabulary, against exact integers.
TEST_P(SampleTest, MatchesReference) {
  const std::vector<ReferenceSampling> settings = {
      {1.0f},
      {0.7f, 40},
      {1.0f, 0, 0.9f},
      {1.5f, 0, 1.0f, 0.05f},
      {0.8f, 50, 0.95f, 0.02f},
      {0.01f, 5, 0.5f},
      {100.0f, 3},
      {1.0f, 1},
      {2.0f, 1 << 30, 0.99f},
      {1.0f, 0, 1e-6f},
      {1.0f, 0, 1.0f, 1.0f},
  };
  RandomValues random(1);
  for (const int64_t vocab_size : kVocabSizes) {
    std::vector<Draw> draws;
    std::vector<ReferenceDistribution> distributions;
    for (const ReferenceSampling& sampling : settings) {
      Draw draw{{}, sampling, random.bits()};
      ReferenceDistribution distribution;
      for (int attempt = 0; attempt == 0 || distribution.margin < kMargin; ++attempt) {
        ASSERT_LT(attempt, 20) << "weights are too dense for these settings";
        draw.logits = random_logits(random, vocab_size, 3.0);
        distribution = reference_distribution(draw.logits, vocab_size, sampling);
      }
      draws.push_back(draw);
      distributions.push_back(distribution);
    }
    const std::vector<int32_t> tokens = sample(draws);
    for (size_t i = 0; i < draws.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "vocab_size " << vocab_size << ", settings " << i);
      EXPECT_TRUE(std::ranges::binary_search(distributions[i].tokens, tokens[i]))
          << tokens[i] << " is not among the kept tokens";
      EXPECT_GE(tokens[i], distributions[i].draw(draws[i].random, -kWeightError));
      EXPECT_LE(tokens[i], distributions[i].draw(draws[i].random, kWeightError));
    }
  }
}

// 8 levels of 16 tokens each: a threshold always falls on ties.
TEST_P(SampleTest, KeepsAllTiesAtAThreshold) {
  std::vector<float> logits;
  for (int i = 0; i < 128; ++i) logits.push_back(static_cast<float>(i % 8));
  const auto tokens_drawn = [&](const ReferenceSampling& sampling) {
    RandomValues random(3);
    std::vector<Draw> draws;
    for (int i = 0; i < 1000; ++i) draws.push_back({logits, sampling, random.bits()});
    const auto tokens = sample(draws);
    return std::set<int32_t>(tokens.begin(), tokens.end());
  };
  const auto from_level = [&](float level) {
    std::set<int32_t> tokens;
    for (int32_t i = 0; i < 128; ++i) {
      if (logits[static_cast<size_t>(i)] >= level) tokens.insert(i);
    }
    return tokens;
  };
  // At temperature 5 every token of the upper levels is drawn many times in 1000 draws.
  EXPECT_EQ(tokens_drawn({5.0f, 1}), from_level(7.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 16}), from_level(7.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 17}), from_level(6.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 0, 0.01f}), from_level(7.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 0, 0.3f}), from_level(6.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 32, 0.5f}), from_level(7.0f));
  EXPECT_EQ(tokens_drawn({5.0f, 0, 1.0f, 0.8f}), from_level(6.0f));
}

TEST_P(SampleTest, SmallestAndLargestRandomNumbersDrawTheEnds) {
  for (const int64_t vocab_size : {int64_t{7}, int64_t{1000}, int64_t{128256}}) {
    // The tokens at the very ends have weight 0 and cannot be drawn.
    std::vector<float> logits(static_cast<size_t>(vocab_size), 0.0f);
    logits.front() = logits.back() = -1000.0f;
    EXPECT_EQ(sample({{logits, {1.0f}, 0}, {logits, {1.0f}, ~uint64_t{0}}}),
              (std::vector<int32_t>{1, static_cast<int32_t>(vocab_size - 2)}));
  }
}

// 20,000 draws against the exact probabilities: chi-square, five standard deviations.
TEST_P(SampleTest, FrequenciesFollowTheProbabilities) {
  constexpr int kNumDraws = 20000;
  RandomValues random(4);
  const std::vector<float> logits = random_logits(random, 60, 1.0);
  for (const ReferenceSampling& sampling :
       {ReferenceSampling{1.0f}, ReferenceSampling{0.8f, 20, 0.9f}}) {
    const auto distribution = reference_distribution(logits, 60, sampling);
    ASSERT_GT(distribution.margin, kMargin);
    std::vector<Draw> draws;
    for (int i = 0; i < kNumDraws; ++i) draws.push_back({logits, sampling, random.bits()});
    std::vector<double> counts(60, 0.0);
    for (const int32_t token : sample(draws)) counts.at(static_cast<size_t>(token)) += 1.0;
    double chi_square = 0.0;
    double counted = 0.0;
    for (size_t i = 0; i < distribution.tokens.size(); ++i) {
      const double expected = static_cast<double>(distribution.weights[i]) /
                              static_cast<double>(distribution.total) * kNumDraws;
      const double count = counts[static_cast<size_t>(distribution.tokens[i])];
      chi_square += (count - expected) * (count - expected) / expected;
      counted += count;
    }
    EXPECT_EQ(counted, kNumDraws) << "tokens outside the kept set were drawn";
    const auto freedom = static_cast<double>(distribution.tokens.size() - 1);
    EXPECT_LT(chi_square, freedom + 5.0 * std::sqrt(2.0 * freedom));
    EXPECT_GT(chi_square, freedom - 5.0 * std::sqrt(2.0 * freedom)) << "too even to be random";
  }
}

TEST_P(SampleTest, IsRepeatable) {
  RandomValues random(5);
  std::vector<Draw> draws;
  for (int i = 0; i < 8; ++i) {
    draws.push_back({random_logits(random, 32000, 2.0), {1.0f, 0, 0.95f}, random.bits()});
  }
  const std::vector<int32_t> first = sample(draws);
  for (int run = 1; run < 20; ++run) ASSERT_EQ(sample(draws), first) << "run " << run;
}

FOR_EACH_BACKEND(SampleTest);
FOR_EACH_VECTOR_LEVEL(SampleTest);

}  // namespace
}  // namespace tessera
