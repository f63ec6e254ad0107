// Prefill over float8_e4m3 pages where not all of them are widened at a time.
#include <gtest/gtest.h>

#include "kernels/cuda/attention/widened/plan.h"

#ifdef TESSERA_CUDA
#include "kernels/cuda/attention/prefill/sm80.h"
#include "kernels/cuda/attention/widened/prefill.h"
#include "kernels/cuda/device/cuda_check.h"
#endif
#include "tests/kernels/attention/problem.h"

namespace tessera {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

BackendLimits widening_limits(int64_t context_length, int64_t max_sequences) {
  return {.max_tokens = 4096,
          .max_sequences = max_sequences,
          .max_context_length = context_length,
          .num_heads = 32,
          .num_kv_heads = 8,
          .head_dim = 128};
}

TEST(WideningPlan, AllHeadsWhereTheyFit) {
  const WideningScratch scratch = widening_scratch(widening_limits(8192, 1));
  EXPECT_EQ(scratch.pages, 32 * kMiB);
  EXPECT_EQ(scratch.rows, 0);
  const WideningPlan plan = plan_widening(scratch, 8, 128, 64, 8192);
  EXPECT_EQ(plan.num_kv_heads, 8);
  EXPECT_EQ(plan.num_sequences, 1);
  EXPECT_EQ(plan.pages_per_sequence, 128);
}

TEST(WideningPlan, SeveralSequencesWhereTheyFit) {
  const WideningScratch scratch = widening_scratch(widening_limits(8192, 64));
  EXPECT_EQ(scratch.pages, 256 * kMiB);
  EXPECT_EQ(plan_widening(scratch, 8, 128, 64, 8192).num_sequences, 8);
  EXPECT_EQ(plan_widening(scratch, 8, 128, 64, 4096).num_sequences, 16);
}

TEST(WideningPlan, SomeHeadsOfLongContextsAndOneOfTheLongest) {
  WideningScratch scratch = widening_scratch(widening_limits(131072, 1));
  EXPECT_EQ(scratch.pages, 256 * kMiB);
  EXPECT_EQ(scratch.rows, 32 * kMiB);
  EXPECT_EQ(plan_widening(scratch, 8, 128, 64, 131072).num_kv_heads, 4);
  scratch = widening_scratch(widening_limits(1000000, 1));
  EXPECT_EQ(plan_widening(scratch, 8, 128, 64, 1000000).num_kv_heads, 1);
  EXPECT_LT(scratch.total(), 600 * kMiB);
}

// What a step needs is never more than what its limits need.
TEST(WideningPlan, AStepFitsInWhatItsLimitsTake) {
  for (const int64_t limit : {1, 64, 5000, 300000}) {
    for (const int64_t sequences : {1, 3, 100}) {
      const int64_t whole = widening_scratch(widening_limits(limit, sequences)).total();
      for (const int64_t length : {int64_t{0}, limit / 2, limit}) {
        for (const int64_t step_sequences : {int64_t{1}, sequences}) {
          const WideningScratch step = widening_scratch(widening_limits(length, step_sequences));
          EXPECT_LE(step.total(), whole);
          for (const int64_t page_size : {16, 64, 256}) {
            const WideningPlan plan = plan_widening(step, 8, 128, page_size, length);
            const int64_t pages = plan.num_sequences * plan.pages_per_sequence;
            EXPECT_LE(plan.num_kv_heads * widened_head_bytes(128, pages * page_size), step.pages);
            EXPECT_LE(pages * 4, step.tables);
          }
        }
      }
    }
  }
}

#ifdef TESSERA_CUDA

class WidenedPrefillTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    if (device().type() != DeviceType::kCuda) GTEST_SKIP() << "CUDA only";
  }

  // The outputs with room for so many bytes of widened keys and values at a time.
  std::vector<uint8_t> run(const AttentionProblem& problem, int64_t most_bytes) const {
    const AttentionParams params = problem.params();
    const KvPages& pages = params.pages;
    const int64_t prefills = params.batch.num_sequences - params.batch.num_decodes;
    const WideningScratch sizes =
        widening_scratch({.max_tokens = params.query.dim(0),
                          .max_sequences = prefills,
                          .max_context_length = params.batch.max_context_length,
                          .num_heads = params.query.dim(1),
                          .num_kv_heads = pages.num_kv_heads(),
                          .head_dim = pages.head_dim()},
                         most_bytes);
    const DeviceTensor scratch =
        poisoned(backend(), DType::kFloat32, {sizes.total() / int64_t{sizeof(float)}});
    const DeviceTensor out = poisoned(backend(), activation(), params.query.shape);
    device().synchronize();
    launch_widened_prefill(
        out, params, scratch,
        [](const Tensor& part_out, const AttentionParams& part) {
          launch_attention_prefill_sm80(part_out, part, nullptr);
        },
        nullptr, most_bytes);
    CUDA_CHECK(cudaStreamSynchronize(nullptr));
    return bytes_of(backend(), out);
  }
};

TEST_P(WidenedPrefillTest, PartsMakeTheSameWhole) {
  for (const int64_t window : {0, 90}) {
    for (const int64_t head_dim : {64, 80, 128}) {
      const AttentionSize size{.num_heads = 10,
                               .num_kv_heads = 5,
                               .head_dim = head_dim,
                               .page_size = 16,
                               .sliding_window = window,
                               .fp8_pages = true};
      const AttentionProblem problem(backend(), size,
                                     {{1, 300}, {33, 700}, {5, 8}, {70, 70}, {20, 513}});
      const int64_t one_head = widened_head_bytes(head_dim, 768);
      const std::vector<uint8_t> whole = run(problem, 100 * one_head);
      EXPECT_TRUE(run(problem, 11 * one_head) == whole);  // two sequences, then one
      EXPECT_TRUE(run(problem, 3 * one_head) == whole);   // three heads, then two
      EXPECT_TRUE(run(problem, 1) == whole);              // one head
    }
  }
}

FOR_EACH_BACKEND(WidenedPrefillTest);

#endif

}  // namespace
}  // namespace tessera
