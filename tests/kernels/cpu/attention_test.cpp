// Attention on a CPU: every instruction set, every type of pages, the edges of its tiles, and the
// same bits whatever else the step computes.
#include "kernels/cpu/attention.h"

#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"
#include "tests/kernels/cpu/vector_levels.h"

namespace tessera {
namespace {

constexpr int64_t kTile = 96;  // rows of a block, and keys of a tile

// Prefills whose rows and keys end around the edges of blocks and tiles, and decodes.
std::vector<SequenceSize> sequences_around_edges(int64_t group) {
  std::vector<SequenceSize> sequences;
  for (const int64_t length : {1, 7, 9, 15, 17, 95, 96, 97, 191, 193, 290}) {
    sequences.push_back({length, length});
    sequences.push_back({1, length});
  }
  for (int64_t edge = kTile; edge <= 2 * kTile; edge += kTile) {
    for (int64_t queries = edge / group - 1; queries <= edge / group + 1; ++queries) {
      sequences.push_back({queries, 200 + queries});
    }
  }
  return sequences;
}

class CpuAttentionTest : public testing::Test {
 protected:
  void check(const AttentionSize& size, const std::vector<SequenceSize>& sequences) {
    AttentionProblem(*backend_, size, sequences).check();
  }

  const std::unique_ptr<Backend> backend_ = make_cpu_backend(2);
};

TEST_F(CpuAttentionTest, EveryInstructionSetAroundTheEdgesOfTiles) {
  for_each_vector_level([this] {
    for (const int64_t group : {1, 3, 4, 8}) {
      for (const int64_t head_dim : {64, 128}) {
        check({.num_heads = 2 * group, .num_kv_heads = 2, .head_dim = head_dim},
              sequences_around_edges(group));
      }
    }
  });
}

TEST_F(CpuAttentionTest, EveryInstructionSetUnderEveryRule) {
  for_each_vector_level([this] {
    for (AttentionSize size : score_rules()) {
      for (const int64_t group : {1, 2, 3, 8}) {
        size.num_heads = group;
        size.num_kv_heads = 1;
        check(size, {{1, 1}, {1, 257}, {5, 130}, {97, 97}, {33, 300}, {150, 149}, {129, 40}});
      }
    }
  });
}

TEST_F(CpuAttentionTest, EveryInstructionSetWithAnyHeadDimAndPageSize) {
  for_each_vector_level([this] {
    for (const int64_t head_dim : {1, 2, 10, 33, 72, 80, 96, 256}) {
      for (const int64_t page_size : {1, 5, 95, 97, 256}) {
        check({.num_heads = 6, .num_kv_heads = 2, .head_dim = head_dim, .page_size = page_size},
              {{1, 170}, {1, 1}, {37, 190}});
      }
    }
  });
}

TEST_F(CpuAttentionTest, EveryInstructionSetWithLargeScores) {
  for_each_vector_level([this] {
    for (const double softcap : {0.0, 50.0}) {
      check({.softcap = softcap, .query_deviation = 100.0}, {{1, 700}, {4, 300}, {120, 220}});
    }
  });
}

// The step of `problem` with its pages stored as `dtype`.
std::vector<uint8_t> run_with_pages(Backend& backend, const AttentionProblem& problem,
                                    DType dtype) {
  AttentionParams params = problem.params();
  const auto stored_as = [&](const Tensor& pages) {
    return to_device(backend, to_host(backend, pages), dtype, pages.shape);
  };
  const DeviceTensor keys = stored_as(params.pages.keys);
  const DeviceTensor values = stored_as(params.pages.values);
  params.pages = {keys, values};
  const DeviceTensor out = poisoned(backend, DType::kFloat32, params.query.shape);
  ThreadPool pool(2);
  ThreadScratch scratch(2);
  attention(out, params, false, scratch, pool);
  return bytes_of(backend, out);
}

// Pages of a 16-bit type give what pages of the same numbers in float32 give.
TEST_F(CpuAttentionTest, PagesOfEveryFloatType) {
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const int64_t head_dim : {64, 128, 33}) {
      const AttentionProblem problem(*backend_, {.head_dim = head_dim, .kv_dtype = dtype},
                                     {{1, 2100}, {1, 5}, {3, 97}, {100, 193}, {20, 20}});
      problem.check();
      for_each_vector_level([&] {
        EXPECT_TRUE(run_with_pages(*backend_, problem, dtype) ==
                    run_with_pages(*backend_, problem, DType::kFloat32))
            << to_string(dtype) << ", head_dim " << head_dim;
      });
    }
  }
}

std::vector<uint8_t> run_on_threads(int num_threads, const std::vector<SequenceSize>& sequences) {
  const auto backend = make_cpu_backend(num_threads);
  return bytes_of(*backend, AttentionProblem(*backend, {}, sequences).run());
}

TEST_F(CpuAttentionTest, ResultDoesNotDependOnThreads) {
  const std::vector<SequenceSize> sequences = {
      {1, 3000}, {1, 300}, {4, 9000}, {65, 165}, {200, 400}};
  for_each_vector_level([&] {
    const std::vector<uint8_t> one = run_on_threads(1, sequences);
    EXPECT_TRUE(one == run_on_threads(2, sequences));
    EXPECT_TRUE(one == run_on_threads(3, sequences));
  });
}

// The first sequence of two problems has the same random numbers.
TEST_F(CpuAttentionTest, ResultDoesNotDependOnOtherSequences) {
  for (const SequenceSize& sequence : {SequenceSize{1, 3000}, {5, 2500}, {150, 400}}) {
    const std::vector<uint8_t> alone = run_on_threads(2, {sequence});
    std::vector<uint8_t> among_others =
        run_on_threads(2, {sequence, {1, 4000}, {97, 97}, {200, 300}});
    among_others.resize(alone.size());
    EXPECT_TRUE(alone == among_others);
  }
}

}  // namespace
}  // namespace tessera
