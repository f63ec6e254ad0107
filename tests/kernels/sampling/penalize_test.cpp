#include <gtest/gtest.h>

#include <limits>

#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class PenalizeTest : public BackendTest {
 protected:
  void check(const std::vector<ReferencePenalties>& sequences, int64_t vocab_size) const {
    const auto num_sequences = static_cast<int64_t>(sequences.size());
    RandomValues random(static_cast<uint64_t>(vocab_size));
    const Shape shape{num_sequences, vocab_size};
    const auto values = rounded(random.normal(shape.num_elements(), 5.0), DType::kFloat32);

    std::vector<int32_t> offsets = {0}, tokens, counts;
    std::vector<double> repetition, frequency, presence;
    Reference expected;
    for (size_t s = 0; s < sequences.size(); ++s) {
      const ReferencePenalties& one = sequences[s];
      tokens.insert(tokens.end(), one.tokens.begin(), one.tokens.end());
      counts.insert(counts.end(), one.counts.begin(), one.counts.end());
      offsets.push_back(static_cast<int32_t>(tokens.size()));
      repetition.push_back(one.repetition);
      frequency.push_back(one.frequency);
      presence.push_back(one.presence);
      const auto row = values.begin() + static_cast<int64_t>(s) * vocab_size;
      const Reference result = reference_penalize({row, row + vocab_size}, one);
      expected.values.insert(expected.values.end(), result.values.begin(), result.values.end());
      expected.magnitudes.insert(expected.magnitudes.end(), result.magnitudes.begin(),
                                 result.magnitudes.end());
    }
    const auto num_listed = static_cast<int64_t>(tokens.size());
    const DeviceTensor logits = floats(values, shape);
    operations().penalize(logits, {.offsets = integers(offsets, {num_sequences + 1}),
                                   .tokens = integers(tokens, {num_listed}),
                                   .counts = integers(counts, {num_listed}),
                                   .repetition = floats(repetition, {num_sequences}),
                                   .frequency = floats(frequency, {num_sequences}),
                                   .presence = floats(presence, {num_sequences})});
    expect_close(host(logits), expected, shape, {.length = 4});
  }

  static ReferencePenalties random_penalties(RandomValues& random, int64_t vocab_size,
                                             int64_t num_listed) {
    ReferencePenalties penalties;
    penalties.tokens = random.permutation(vocab_size);
    penalties.tokens.resize(static_cast<size_t>(num_listed));
    penalties.counts = random.integers(num_listed, 0, 9);
    // Multiples of 1/64 are exact in float32.
    penalties.repetition = static_cast<double>(random.integer(32, 128)) / 64.0;
    penalties.frequency = static_cast<double>(random.integer(-64, 64)) / 64.0;
    penalties.presence = static_cast<double>(random.integer(-64, 64)) / 64.0;
    return penalties;
  }
};

TEST_P(PenalizeTest, MatchesReference) {
  RandomValues random(1);
  for (const int64_t vocab_size : {7, 1000, 32000}) {
    SCOPED_TRACE(testing::Message() << "vocab_size " << vocab_size);
    check({random_penalties(random, vocab_size, 1)}, vocab_size);
    check({random_penalties(random, vocab_size, 3),
           {},
           random_penalties(random, vocab_size, 7),
           random_penalties(random, vocab_size, 0)},
          vocab_size);
    check({random_penalties(random, vocab_size, vocab_size),
           random_penalties(random, vocab_size, vocab_size / 2)},
          vocab_size);
  }
}

TEST_P(PenalizeTest, EachPenaltyAlone) {
  const std::vector<int32_t> tokens = {0, 3, 6};
  const std::vector<int32_t> counts = {1, 5, 0};
  check({{tokens, counts, 1.5, 0.0, 0.0},
         {tokens, counts, 1.0, 0.25, 0.0},
         {tokens, counts, 1.0, 0.0, 0.75}},
        7);
}

TEST_P(PenalizeTest, BarredTokensFallBelowAllOthers) {
  const DeviceTensor logits = floats({5.0, -1e30, 7.0, 2.0}, {1, 4});
  operations().penalize(logits, {.offsets = integers({0, 3}, {2}),
                                 .tokens = integers({2, 1, 3}, {3}),
                                 .counts = integers({kBarredCount, kBarredCount, 2}, {3}),
                                 .repetition = floats({2.0}, {1}),
                                 .frequency = floats({0.25}, {1}),
                                 .presence = floats({0.0}, {1})});
  constexpr double kLowest = std::numeric_limits<float>::lowest();
  EXPECT_EQ(host(logits), (std::vector<double>{5.0, kLowest, kLowest, 0.5}));
}

TEST_P(PenalizeTest, CanBeTakenBack) {
  RandomValues random(2);
  constexpr int64_t kVocabSize = 1000;
  const DeviceTensor logits = floats(random.normal(2 * kVocabSize, 5.0), {2, kVocabSize});
  const std::vector<uint8_t> before = bytes_of(backend(), logits);
  std::vector<int32_t> tokens = random.permutation(kVocabSize);
  tokens.resize(300);
  std::vector<int32_t> counts = random.integers(300, 1, 9);
  counts[7] = kBarredCount;
  const DeviceTensor listed = integers(tokens, {300}), times = integers(counts, {300});
  const DeviceTensor offsets = integers({0, 10, 300}, {3});
  const DeviceTensor repetition = floats({1.3, 0.7}, {2}), others = floats({0.5, -0.25}, {2});
  const DeviceTensor kept = poisoned(backend(), DType::kFloat32, {300});
  const PenaltyBatch penalties = {.offsets = offsets,
                                  .tokens = listed,
                                  .counts = times,
                                  .repetition = repetition,
                                  .frequency = others,
                                  .presence = others,
                                  .before = kept};
  operations().penalize(logits, penalties);
  EXPECT_NE(bytes_of(backend(), logits), before);
  operations().restore_penalized(logits, penalties);
  EXPECT_EQ(bytes_of(backend(), logits), before);
}

TEST_P(PenalizeTest, NothingListedChangesNothing) { check({{}, {}}, 131); }

FOR_EACH_BACKEND(PenalizeTest);

}  // namespace
}  // namespace tessera
