// Which keys a query sees, and what becomes of its scores.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"

namespace tessera {
namespace {

class AttentionMasksTest : public AttentionTest {
 protected:
  // Of what run() returned, rows [begin, end) of the step's tokens.
  void expect_zeros(const Tensor& out, int64_t begin, int64_t end) const {
    const Tensor rows = out.slice(begin, end);
    expect_equal(host(rows), std::vector<double>(static_cast<size_t>(rows.num_elements())),
                 rows.shape);
  }
};

TEST_P(AttentionMasksTest, SlidingWindow) {
  for (AttentionSize size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      for (const int64_t window :
           {int64_t{1}, int64_t{7}, page_size, int64_t{100}, int64_t{5000}}) {
        size.sliding_window = window;
        check(size, page_size, {{1, 1}, {1, 65}, {1, 300}, {1, 700}, {33, 33}, {40, 300}});
      }
    }
  }
}

// Windows whose edge crosses the tiles of a long chunk, and queries that outnumber the context.
TEST_P(AttentionMasksTest, SlidingWindowOverManyTiles) {
  for (const int64_t head_dim : kHeadDims) {
    for (const int64_t window : {1, 63, 64, 65, 128, 200}) {
      check({.num_heads = 2, .num_kv_heads = 1, .head_dim = head_dim, .sliding_window = window},
            {{7, 600}, {300, 500}, {200, 100}});
    }
  }
}

TEST_P(AttentionMasksTest, EveryRuleWithEveryLayout) {
  for (AttentionSize size : score_rules()) {
    for (const AttentionSize& layout : head_layouts()) {
      size.num_heads = layout.num_heads;
      size.num_kv_heads = layout.num_kv_heads;
      size.head_dim = layout.head_dim;
      check(size, {{1, 257}, {6, 190}, {65, 65}, {33, 300}, {150, 149}, {129, 40}});
    }
  }
}

// Scores in the hundreds: without the running maximum exp() overflows, and all but a few
// probabilities vanish. A softcap makes them nearly equal again.
TEST_P(AttentionMasksTest, LargeScores) {
  for (AttentionSize size : head_layouts()) {
    size.query_deviation = 100.0;
    check(size, {{1, 700}, {1, 65}, {4, 300}, {70, 70}, {20, 300}});
    size.softcap = 50.0;
    check(size, {{1, 700}, {1, 65}, {4, 300}, {70, 70}, {20, 300}});
  }
}

// Scores that all but vanish: probabilities are nearly equal.
TEST_P(AttentionMasksTest, SmallScale) {
  for (AttentionSize size : head_layouts()) {
    size.scale = 1e-3;
    check(size, {{1, 700}, {3, 65}, {70, 70}, {20, 300}});
  }
}

TEST_P(AttentionMasksTest, QueriesThatSeeNoKeyGetZeros) {
  for (AttentionSize size : head_layouts()) {
    // Tokens 0-3 see nothing of a context of 3, 7-11 are of an empty one, 12-111 see nothing of a
    // context of 50, 162-241 are of an empty one again.
    const AttentionProblem problem(backend(), size, {{7, 3}, {5, 0}, {150, 50}, {80, 0}, {20, 20}});
    problem.check();
    const DeviceTensor out = problem.run();
    expect_zeros(out, 0, 4);
    expect_zeros(out, 7, 112);
    expect_zeros(out, 162, 242);
  }
}

TEST_P(AttentionMasksTest, EmptySequencesAmongOthers) {
  for (AttentionSize size : head_layouts()) {
    for (const bool causal : {true, false}) {
      size.causal = causal;
      check(size, {{0, 40},
                   {1, 100},
                   {0, 0},
                   {3, 30},
                   {0, 65},
                   {40, 40},
                   {0, 0},
                   {0, 128},
                   {9, 0},
                   {0, 64},
                   {65, 130},
                   {0, 1}});
    }
  }
  check({}, {{0, 0}, {0, 10}, {30, 30}});
  check({}, {{30, 0}});
  check({}, {{2, 0}});
  check({.causal = false}, {{2, 0}, {20, 0}});
}

FOR_EACH_ATTENTION_BACKEND(AttentionMasksTest);

}  // namespace
}  // namespace tessera
