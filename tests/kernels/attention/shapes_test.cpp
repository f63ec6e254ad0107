// Awkward (query_length, context_length) pairs, after those that FlashAttention and FlashInfer
// test with.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

class AttentionShapesTest : public AttentionTest {
 protected:
  // Under every rule, each as a sequence of one step.
  void check_rules(int64_t head_dim, const std::vector<SequenceSize>& sequences) const {
    for (AttentionSize size : score_rules()) {
      size.num_heads = 2;
      size.num_kv_heads = 1;
      size.head_dim = head_dim;
      check(size, sequences);
    }
  }
};

TEST_P(AttentionShapesTest, UnequalLengths) {
  for (const int64_t head_dim : kHeadDims) {
    check_rules(head_dim, {{1, 1},
                           {64, 128},
                           {128, 192},
                           {256, 256},
                           {239, 1},
                           {799, 3},
                           {113, 203},
                           {113, 128},
                           {128, 217},
                           {113, 211},
                           {108, 256},
                           {256, 512},
                           {384, 256},
                           {640, 128},
                           {512, 256}});
  }
}

TEST_P(AttentionShapesTest, AboutThousandTokens) {
  for (const int64_t head_dim : kHeadDims) {
    for (const SequenceSize& sequence :
         {SequenceSize{1024, 1024}, SequenceSize{1023, 1024}, SequenceSize{1024, 1023}}) {
      check({.num_heads = 1, .num_kv_heads = 1, .head_dim = head_dim}, {sequence});
    }
    check({.num_heads = 1, .num_kv_heads = 1, .head_dim = head_dim, .softcap = 3, .causal = false},
          {{1023, 1024}});
  }
}

TEST_P(AttentionShapesTest, ThousandsOfTokens) {
  if (GetParam() == "cpu") GTEST_SKIP() << "takes too long";
  for (const int64_t head_dim : kHeadDims) {
    AttentionSize size{.num_heads = 1, .num_kv_heads = 1, .head_dim = head_dim};
    check(size, {{4096, 4096}});
    size.causal = false;
    check(size, {{4224, 4224}});
  }
}

TEST_P(AttentionShapesTest, OddQueriesOfOddContexts) {
  std::vector<SequenceSize> sequences;
  for (const int64_t query_length : {17, 37, 127, 577}) {
    for (const int64_t context_length : {54, 97, 512, 2048}) {
      sequences.push_back({query_length, context_length});
    }
  }
  for (const int64_t head_dim : kHeadDims) {
    check({.num_heads = 1, .num_kv_heads = 1, .head_dim = head_dim}, sequences);
  }
}

// Nine sequences of random lengths, six query heads in groups of 1, 3 and 6.
TEST_P(AttentionShapesTest, RaggedBatches) {
  RandomValues random(9);
  for (const int64_t head_dim : kHeadDims) {
    for (const int64_t num_kv_heads : {6, 2, 1}) {
      std::vector<SequenceSize> sequences;
      for (int i = 0; i < 9; ++i) {
        sequences.push_back({random.integer(1, 150), random.integer(1, 200)});
      }
      check({.num_heads = 6,
             .num_kv_heads = num_kv_heads,
             .head_dim = head_dim,
             .causal = random.integer(0, 1) == 0},
            sequences);
    }
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionShapesTest);

}  // namespace
}  // namespace tessera
