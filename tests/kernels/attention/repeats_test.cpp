// The same bits, however often, on however many threads and wherever the pages lie.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"
#include "tests/kernels/num_repeats.h"

namespace tessera {
namespace {

// How often each case runs. Races hide from a few runs: ask for 10,000 on a GPU.
class AttentionRepeatsTest : public AttentionTest {
 protected:
  // In groups of 4 heads, two of them: blocks enough to keep a GPU busy.
  void check_repeats(AttentionSize size, const std::vector<SequenceSize>& sequences) const {
    size.num_heads = 8;
    for (const int64_t head_dim : {64, 96, 128, 256}) {
      size.head_dim = head_dim;
      AttentionProblem(backend(), size, sequences).check_repeats(num_repeats(20));
    }
  }
};

TEST_P(AttentionRepeatsTest, Decodes) {
  check_repeats({}, {{1, 1000}, {1, 2}, {1, 2049}, {1, 257}, {1, 700}, {1, 65}});
}

TEST_P(AttentionRepeatsTest, DecodesOfSeveralTokens) {
  check_repeats({}, {{4, 1000}, {8, 257}, {1, 1500}, {3, 65}});
}

TEST_P(AttentionRepeatsTest, Prefills) { check_repeats({}, {{150, 300}, {129, 129}}); }

TEST_P(AttentionRepeatsTest, PrefillsWithOtherMasks) {
  check_repeats({.softcap = 20.0, .sliding_window = 100}, {{65, 400}, {80, 80}});
  check_repeats({.causal = false}, {{65, 300}, {40, 129}});
}

TEST_P(AttentionRepeatsTest, MixedSteps) {
  check_repeats({}, {{1, 1000}, {2, 40}, {1, 257}, {65, 65}, {3, 300}});
}

TEST_P(AttentionRepeatsTest, PlaceOfPagesDoesNotMatter) {
  for (const AttentionSize& rule : score_rules()) {
    for (const int64_t page_size : kPageSizes) {
      const auto run = [&](bool pages_in_order) {
        AttentionSize size = rule;
        size.page_size = page_size;
        size.pages_in_order = pages_in_order;
        const AttentionProblem problem(
            backend(), size, {{1, 1000}, {3, 257}, {65, 165}, {20, 20}, {2, 400}, {130, 129}});
        return bytes_of(backend(), problem.run());
      };
      EXPECT_TRUE(run(true) == run(false)) << "pages of " << page_size;
    }
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionRepeatsTest);

}  // namespace
}  // namespace tessera
