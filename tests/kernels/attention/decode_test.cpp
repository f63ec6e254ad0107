// Sequences with few query tokens, which come first in a step.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"

namespace tessera {
namespace {

class AttentionDecodeTest : public AttentionTest {};

// Around the edges of pages, of the tiles kernels use, and of splits.
std::vector<int64_t> context_lengths(int64_t page_size) {
  return {1,   page_size - 1, page_size, page_size + 1, 63,  64,  65,
          127, 128,           129,       255,           256, 257, 1000};
}

std::vector<SequenceSize> decodes(int64_t page_size) {
  std::vector<SequenceSize> sequences;
  for (const int64_t length : context_lengths(page_size)) sequences.push_back({1, length});
  return sequences;
}

TEST_P(AttentionDecodeTest, UnequalContexts) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) check(size, page_size, decodes(page_size));
  }
}

TEST_P(AttentionDecodeTest, OneLongContext) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) check(size, page_size, {{1, 4097}});
  }
}

TEST_P(AttentionDecodeTest, SingleSequences) {
  for (const AttentionSize& size : head_layouts()) {
    for (const SequenceSize& sequence : decodes(64)) check(size, 64, {sequence});
  }
}

// As when a draft of several tokens is verified: contexts shorter than the queries, equal to them,
// and with edges of tiles among them.
TEST_P(AttentionDecodeTest, SeveralQueryTokens) {
  for (const AttentionSize& size : head_layouts()) {
    for (int64_t query_length = 2; query_length <= kMaxDecodeQueryLength; ++query_length) {
      std::vector<SequenceSize> sequences = {{query_length, query_length},
                                             {query_length, query_length - 1}};
      for (const int64_t edge : {16, 64, 128, 256, 500}) {
        sequences.push_back({query_length, edge + query_length / 2});
      }
      check(size, kPageSizes[query_length % 3], sequences);
    }
  }
}

TEST_P(AttentionDecodeTest, SeveralQueryTokensOfLongContexts) {
  for (const AttentionSize& size : head_layouts()) {
    check(size, {{2, 4097}});
    check(size, {{8, 9001}});
    check(size, {{3, 3080}, {8, 1025}, {1, 2049}, {7, 4000}});
  }
}

TEST_P(AttentionDecodeTest, UnequalQueryLengths) {
  for (AttentionSize size : score_rules()) {
    for (const AttentionSize& layout : head_layouts()) {
      size.num_heads = layout.num_heads;
      size.num_kv_heads = layout.num_kv_heads;
      size.head_dim = layout.head_dim;
      check(size, {{1, 300}, {8, 130}, {3, 700}, {0, 50}, {5, 2}, {2, 65}, {0, 0}, {4, 0}, {7, 7}});
    }
  }
}

// Query heads of one KV head times query tokens beyond what a tile of rows can hold.
TEST_P(AttentionDecodeTest, LargeGroups) {
  for (const int64_t num_heads : {12, 16, 17, 40}) {
    for (const int64_t query_length : {1, 2, 5, 8}) {
      check({.num_heads = num_heads, .num_kv_heads = 1, .head_dim = 128},
            {{query_length, 200}, {1, 77}, {query_length, 15}});
    }
  }
}

TEST_P(AttentionDecodeTest, MixedWithPrefills) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      // The single token after the first prefill is no leading decode.
      check(size, page_size, {{1, 100}, {1, 1}, {1, 300}, {33, 33}, {1, 70}, {17, 200}});
      check(size, page_size, {{1, 100}, {8, 90}, {4, 300}, {9, 9}, {2, 70}, {40, 200}, {0, 9}});
    }
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionDecodeTest);

}  // namespace
}  // namespace tessera
