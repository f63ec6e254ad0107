// Sequences with many query tokens: prompts, whole or in chunks.
#include <gtest/gtest.h>

#include "tests/kernels/attention/sizes.h"

namespace tessera {
namespace {

class AttentionPrefillTest : public AttentionTest {};

TEST_P(AttentionPrefillTest, FromEmpty) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      check(size, page_size, {{17, 17}, {33, 33}, {63, 63}, {64, 64}, {65, 65}, {3, 3}});
      check(size, page_size, {{129, 129}});
    }
  }
  check(head_layouts()[2], 64, {{257, 257}, {2, 2}});
}

TEST_P(AttentionPrefillTest, InChunks) {
  for (const AttentionSize& size : head_layouts()) {
    for (const int64_t page_size : kPageSizes) {
      check(size, page_size, {{17, 64}, {64, 65}, {17, 129}, {2, 257}});
      check(size, page_size, {{33, 1000}});
    }
  }
  check(head_layouts()[2], 64, {{128, 256}});
}

// Tiles of 64, 80, 128 and 192 queries or keys, pages of 16, 64 and 128 tokens, and one around.
TEST_P(AttentionPrefillTest, AroundTileEdges) {
  std::vector<SequenceSize> whole, chunks;
  for (const int64_t edge : {16, 64, 80, 128, 192}) {
    for (const int64_t length : {edge - 1, edge, edge + 1}) {
      whole.push_back({length, length});
      chunks.push_back({37, 37 + length});
    }
  }
  for (const int64_t head_dim : kHeadDims) {
    for (const int64_t page_size : kPageSizes) {
      for (const bool causal : {true, false}) {
        const AttentionSize size{
            .num_heads = 2, .num_kv_heads = 1, .head_dim = head_dim, .causal = causal};
        check(size, page_size, whole);
        check(size, page_size, chunks);
      }
    }
  }
}

// Few query tokens, but not as decodes.
TEST_P(AttentionPrefillTest, ShortQueries) {
  for (AttentionSize size : head_layouts()) {
    size.max_decode_query_length = -1;
    check(size, {{1, 1}, {1, 64}, {2, 129}, {5, 3}, {0, 7}, {8, 200}, {16, 300}, {1, 1000}});
  }
}

FOR_EACH_ATTENTION_BACKEND(AttentionPrefillTest);

}  // namespace
}  // namespace tessera
