// Decodes whose contexts begin with the same pages.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"
#include "tests/kernels/num_repeats.h"

namespace tessera {
namespace {

class AttentionSharedPrefixTest : public AttentionTest {
 protected:
  // Groups as given, and for each of their decodes how many tokens its context has besides.
  void check_groups(AttentionSize size, const std::vector<SharedSize>& groups,
                    const std::vector<int64_t>& own_lengths,
                    const std::vector<SequenceSize>& prefills = {}) const {
    size.head_dim = 128;
    size.shared = groups;
    std::vector<SequenceSize> sequences;
    for (const auto& [num_decodes, length] : groups) {
      for (int64_t i = 0; i < num_decodes; ++i) {
        sequences.push_back({1, length + own_lengths[sequences.size() % own_lengths.size()]});
      }
    }
    sequences.insert(sequences.end(), prefills.begin(), prefills.end());
    check(size, sequences);
  }
};

// Around the edges of tiles and pages behind a prefix, with prefixes of one tile and more.
TEST_P(AttentionSharedPrefixTest, OneGroup) {
  const std::vector<int64_t> own_lengths = {1, 63, 64, 65, 17, 128, 129, 2, 500};
  for (const int64_t length : {64, 128, 192, 1024}) {
    for (const int64_t num_decodes : {2, 3, 8, 9, 17}) {
      check_groups({}, {{num_decodes, length}}, own_lengths);
    }
  }
}

TEST_P(AttentionSharedPrefixTest, HeadLayouts) {
  for (const auto& [num_heads, num_kv_heads] :
       {std::pair{1, 1}, std::pair{8, 8}, std::pair{12, 4}, std::pair{16, 2}, std::pair{24, 1}}) {
    const AttentionSize size{.num_heads = num_heads, .num_kv_heads = num_kv_heads};
    check_groups(size, {{11, 256}}, {1, 100});
  }
}

TEST_P(AttentionSharedPrefixTest, PagesOfAnySize) {
  for (const int64_t page_size : {16, 32, 128}) {
    check_groups({.page_size = page_size}, {{6, 384}}, {1, 130, 20});
  }
}

// Groups of their own prefixes, and decodes in between that share nothing.
TEST_P(AttentionSharedPrefixTest, SeveralGroups) {
  check_groups({}, {{5, 128}, {3, 0}, {12, 640}}, {1, 70, 3});
  check_groups({}, {{4, 0}, {2, 64}}, {65, 1});
  check_groups({}, {{1, 128}, {1, 64}, {40, 320}}, {5, 300});
}

TEST_P(AttentionSharedPrefixTest, BesidePrefills) {
  check_groups({}, {{7, 192}}, {1, 64, 90}, {{33, 33}, {17, 200}});
}

// As the last layer of a step has them: of prompts only sampled tokens, of some none. These are
// decodes that share nothing.
TEST_P(AttentionSharedPrefixTest, BesideDecodesWithoutQueries) {
  AttentionSize size{.head_dim = 128};
  size.shared = {{9, 256}, {2, 0}};
  std::vector<SequenceSize> sequences(9, {1, 256 + 70});
  sequences.insert(sequences.end(), {{0, 500}, {1, 65}, {0, 64}, {1, 1000}, {0, 33}});
  check(size, sequences);
}

// A batch for which the kernel divides the work before it knows all lengths, and one of more
// sequences than lanes keep.
TEST_P(AttentionSharedPrefixTest, ManySequences) {
  check_groups({.num_heads = 8}, {{33, 512}, {37, 128}}, {1, 40, 200});
}

TEST_P(AttentionSharedPrefixTest, ScoreRules) {
  for (const AttentionSize& size : score_rules()) check_groups(size, {{9, 256}}, {1, 100, 64});
}

TEST_P(AttentionSharedPrefixTest, PagesOfFp8) {
  check_groups({.fp8_pages = true}, {{9, 256}}, {1, 100, 64});
}

TEST_P(AttentionSharedPrefixTest, RepeatsBitByBit) {
  AttentionSize size{.num_heads = 16, .num_kv_heads = 4, .head_dim = 128};
  size.shared = {{20, 704}, {5, 128}};
  std::vector<SequenceSize> sequences(20, {1, 704 + 150});
  sequences.insert(sequences.end(), 5, {1, 900});
  AttentionProblem(backend(), size, sequences).check_repeats(num_repeats(10));
}

FOR_EACH_ATTENTION_BACKEND(AttentionSharedPrefixTest);

}  // namespace
}  // namespace tessera
