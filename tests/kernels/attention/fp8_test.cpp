// Attention over float8_e4m3 pages: as over others, of the numbers that the pages hold. Bytes that
// must not be read are NaN.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"

namespace tessera {
namespace {

// CUDA decodes heads of multiples of 32.
std::vector<AttentionSize> fp8_layouts() {
  return {{.num_heads = 6, .num_kv_heads = 6, .head_dim = 64, .fp8_pages = true},
          {.num_heads = 8, .num_kv_heads = 2, .head_dim = 128, .fp8_pages = true},
          {.num_heads = 21, .num_kv_heads = 3, .head_dim = 96, .fp8_pages = true},
          {.num_heads = 8, .num_kv_heads = 1, .head_dim = 128, .fp8_pages = true},
          {.num_heads = 12, .num_kv_heads = 3, .head_dim = 32, .fp8_pages = true},
          {.num_heads = 6, .num_kv_heads = 3, .head_dim = 256, .fp8_pages = true}};
}

class AttentionFp8Test : public AttentionTest {};

TEST_P(AttentionFp8Test, Decode) {
  std::vector<SequenceSize> sequences;
  for (const int64_t length : {1, 15, 16, 17, 63, 64, 65, 127, 129, 256, 257, 1000}) {
    sequences.push_back({1, length});
  }
  for (const int64_t page_size : kPageSizes) {
    check({.num_heads = 8, .num_kv_heads = 2, .head_dim = 128, .fp8_pages = true}, page_size,
          sequences);
  }
  for (const AttentionSize& size : fp8_layouts()) {
    check(size, 16, sequences);
    check(size, 64, {{1, 4097}});
    for (const int64_t length : {1, 64, 65, 300}) check(size, {{1, length}});
  }
}

TEST_P(AttentionFp8Test, SeveralQueryTokens) {
  for (const AttentionSize& size : fp8_layouts()) {
    for (const int64_t query_length : {2, 3, 8}) {
      check(size, kPageSizes[query_length % 3],
            {{query_length, query_length},
             {query_length, query_length - 1},
             {query_length, 68},
             {query_length, 500},
             {0, 50},
             {1, 300}});
    }
    check(size, {{8, 3001}});
  }
}

TEST_P(AttentionFp8Test, LargeGroups) {
  for (const int64_t num_heads : {16, 17, 40}) {
    for (const int64_t query_length : {1, 5, 8}) {
      check({.num_heads = num_heads, .num_kv_heads = 1, .head_dim = 128, .fp8_pages = true},
            {{query_length, 200}, {1, 77}, {query_length, 15}});
    }
  }
}

TEST_P(AttentionFp8Test, Prefill) {
  for (const AttentionSize& size : fp8_layouts()) {
    check(size, 16, {{33, 33}, {70, 300}, {9, 9}, {150, 151}});
    check(size, 128, {{1, 100}, {4, 300}, {33, 33}, {1, 70}, {17, 200}, {0, 9}});
  }
  check({.fp8_pages = true}, {{7, 3}, {5, 0}, {150, 50}, {80, 0}, {20, 20}});
  check({.fp8_pages = true}, {{30, 0}});
}

TEST_P(AttentionFp8Test, EveryRule) {
  for (AttentionSize size : score_rules()) {
    for (const AttentionSize& layout : fp8_layouts()) {
      size.num_heads = layout.num_heads;
      size.num_kv_heads = layout.num_kv_heads;
      size.head_dim = layout.head_dim;
      size.fp8_pages = true;
      check(size, {{1, 257}, {6, 190}, {65, 65}, {33, 600}, {129, 40}});
    }
  }
}

// Queries far above and below what float16 holds, and probabilities that all but vanish.
TEST_P(AttentionFp8Test, QueriesOfAnyMagnitude) {
  for (AttentionSize size : fp8_layouts()) {
    for (const double deviation : {1e-7, 1e-3, 100.0}) {
      size.query_deviation = deviation;
      check(size, {{1, 700}, {1, 65}, {4, 300}, {20, 300}});
    }
    if (activation() == DType::kFloat16) continue;
    size.query_deviation = 1e6;
    size.scale = 1e-6;
    check(size, {{1, 700}, {4, 300}, {20, 300}});
  }
}

TEST_P(AttentionFp8Test, RepeatsBitByBit) {
  for (const AttentionSize& size : fp8_layouts()) {
    AttentionProblem(backend(), size, {{1, 3000}, {3, 500}, {1, 64}, {40, 100}}).check_repeats(5);
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionFp8Test);

}  // namespace
}  // namespace tessera
