#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/attention_problem.h"

namespace tessera {
namespace {

// Groups of 1, 3, 4, 7 and 8 query heads per KV head, over every supported head_dim.
std::vector<AttentionSize> head_layouts() {
  return {{.num_heads = 2, .num_kv_heads = 2, .head_dim = 64},
          {.num_heads = 6, .num_kv_heads = 2, .head_dim = 80},
          {.num_heads = 8, .num_kv_heads = 2, .head_dim = 128},
          {.num_heads = 7, .num_kv_heads = 1, .head_dim = 96},
          {.num_heads = 8, .num_kv_heads = 1, .head_dim = 64},
          {.num_heads = 4, .num_kv_heads = 1, .head_dim = 32}};
}

constexpr int64_t kPageSizes[] = {16, 64, 128};

// Around the edges of pages, of the tiles kernels use, and of splits.
std::vector<SequenceSize> decodes(int64_t page_size) {
  std::vector<SequenceSize> sequences;
  for (const int64_t length : {int64_t{1}, page_size - 1, page_size, page_size + 1, int64_t{63},
                               int64_t{64}, int64_t{65}, int64_t{127}, int64_t{128}, int64_t{129},
                               int64_t{255}, int64_t{256}, int64_t{257}, int64_t{1000}}) {
    sequences.push_back({1, length});
  }
  return sequences;
}

class AttentionTest : public BackendTest {
 protected:
  void check(AttentionSize size, int64_t page_size,
             const std::vector<SequenceSize>& sequences) const {
    size.page_size = page_size;
    AttentionProblem(backend(), size, sequences).check();
  }
};

TEST_P(AttentionTest, DecodesUnequalContexts) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) check(size, page_size, decodes(page_size));
  }
}

TEST_P(AttentionTest, DecodesOneLongContext) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) check(size, page_size, {{1, 4097}});
  }
}

TEST_P(AttentionTest, DecodesSingleSequences) {
  for (const AttentionSize& size : head_layouts()) {
    for (const SequenceSize& sequence : decodes(64)) check(size, 64, {sequence});
  }
}

TEST_P(AttentionTest, PrefillsFromEmpty) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      check(size, page_size, {{3, 3}, {17, 17}, {33, 33}, {63, 63}, {64, 64}, {65, 65}});
      check(size, page_size, {{129, 129}});
    }
  }
  check(head_layouts()[2], 64, {{257, 257}, {2, 2}});
}

TEST_P(AttentionTest, PrefillsInChunks) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      check(size, page_size, {{5, 64}, {64, 65}, {17, 129}, {2, 257}});
      check(size, page_size, {{33, 1000}});
    }
  }
  check(head_layouts()[2], 64, {{128, 256}});
}

TEST_P(AttentionTest, MixesDecodesAndPrefills) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      // The single token after the first prefill is no leading decode.
      check(size, page_size, {{1, 100}, {1, 1}, {1, 300}, {33, 33}, {1, 70}, {17, 200}});
    }
  }
}

TEST_P(AttentionTest, SlidingWindow) {
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

// Scores in the hundreds: without the running maximum exp() overflows, and all but a few
// probabilities vanish.
TEST_P(AttentionTest, LargeScores) {
  for (AttentionSize size : head_layouts()) {
    size.query_deviation = 100.0;
    check(size, 64, {{1, 700}, {1, 65}, {70, 70}, {20, 300}});
  }
}

TEST_P(AttentionTest, IsBitwiseRepeatable) {
  AttentionSize size = head_layouts()[2];
  const AttentionProblem problem(backend(), size,
                                 {{1, 1000}, {1, 2}, {1, 257}, {65, 65}, {3, 300}});
  std::vector<uint8_t> first;
  for (int run = 0; run < 20; ++run) {
    const auto bytes = bytes_of(backend(), problem.run());
    if (run == 0) first = bytes;
    ASSERT_EQ(bytes, first) << "run " << run;
  }
}

TEST_P(AttentionTest, NoTokensIsNoWork) {
  const AttentionProblem problem(backend(), {}, {});
  EXPECT_NO_THROW(problem.run());
}

FOR_EACH_BACKEND(AttentionTest);

// head_dim and page sizes that CUDA refuses.
TEST(CpuAttentionTest, TakesAnyHeadDimAndPageSize) {
  const auto backend = make_cpu_backend(3);
  for (const int64_t head_dim : {2, 10, 72, 256}) {
    for (const int64_t page_size : {1, 5, 256}) {
      AttentionProblem(
          *backend,
          {.num_heads = 6, .num_kv_heads = 2, .head_dim = head_dim, .page_size = page_size},
          {{1, 70}, {1, 1}, {37, 90}})
          .check();
    }
  }
}

TEST(CpuAttentionTest, ResultDoesNotDependOnThreads) {
  const auto one = make_cpu_backend(1);
  const auto three = make_cpu_backend(3);
  const std::vector<SequenceSize> sequences = {{1, 1000}, {1, 300}, {65, 165}};
  const auto run = [&](Backend& backend) {
    return bytes_of(backend, AttentionProblem(backend, {}, sequences).run());
  };
  EXPECT_EQ(run(*one), run(*three));
}

}  // namespace
}  // namespace tessera
