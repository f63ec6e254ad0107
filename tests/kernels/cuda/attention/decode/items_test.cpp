// The division that decode attention makes on the GPU is the one that attention_decode_plan_test
// tries on the host.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

#include "kernels/backend.h"
#include "tests/kernels/cuda/attention/decode/items_kernel.h"
#include "tests/kernels/cuda/attention/decode/no_window.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

// `query_length(i)` and `context_length(i)` of sequence i.
template <typename QueryLength, typename ContextLength>
DecodeItemsCase make_case(int num_kv_heads, int num_sequences, int window,
                          const QueryLength& query_length, const ContextLength& context_length) {
  DecodeItemsCase work{.shape = {.heads_per_kv_head = 4,
                                 .num_kv_heads = num_kv_heads,
                                 .item_rows = 4,
                                 .window = window},
                       .num_blocks = kH200.num_multiprocessors,
                       .is_even = false,
                       .query_starts = {0},
                       .context_lengths = {}};
  for (int i = 0; i < num_sequences; ++i) {
    work.query_starts.push_back(work.query_starts.back() + query_length(i));
    work.context_lengths.push_back(context_length(i));
  }
  return work;
}

int query_length(const DecodeItemsCase& work, size_t sequence) {
  return work.query_starts[sequence + 1] - work.query_starts[sequence];
}

std::vector<DecodeSequence> sequences_of(const DecodeItemsCase& work) {
  std::vector<DecodeSequence> sequences;
  for (size_t i = 0; i < work.context_lengths.size(); ++i) {
    sequences.push_back(
        decode_sequence(work.shape, query_length(work, i), work.context_lengths[i]));
  }
  return sequences;
}

// What the functions of partition.h say that the blocks read.
std::vector<std::vector<ListedPiece>> expected_pieces(const DecodeItemsCase& work) {
  const std::vector<DecodeSequence> sequences = sequences_of(work);
  const DecodeShare share = decode_share(sequences, work.num_blocks, work.shape.keeps_whole);
  std::vector<std::vector<ListedPiece>> pieces(static_cast<size_t>(work.num_blocks));
  int item_begin = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    const DecodeSequence& sequence = sequences[i];
    for (int item = 0; item < sequence.num_items; ++item) {
      const int first_row = item % sequence.row_blocks * work.shape.item_rows;
      const int rows = query_length(work, i) * work.shape.heads_per_kv_head - first_row;
      const int num_tiles = sequence.num_tiles;
      // An item that reads nothing still has zeros to write.
      const PieceOwners owners = num_tiles > 0 ? piece_owners(share, item_begin, num_tiles)
                                               : PieceOwners{item_begin / share.tiles, 1};
      for (int index = 0; index < owners.count; ++index) {
        const int block = owners.first_block + index;
        const DecodeTiles tiles =
            num_tiles > 0 ? decode_tiles(share, item_begin, num_tiles, block) : DecodeTiles{0, 0};
        pieces[static_cast<size_t>(block)].push_back(
            {.sequence = static_cast<int>(i),
             .kv_head = item / sequence.row_blocks,
             .first_row = first_row,
             .num_rows = std::min(work.shape.item_rows, rows),
             .tile_begin = sequence.first_tile + tiles.begin,
             .tile_end = sequence.first_tile + tiles.end,
             .index = index,
             .first_block = owners.first_block,
             .count = owners.count});
      }
      item_begin += share.payload(num_tiles);
    }
  }
  return pieces;
}

// The same of one sequence whose KV heads have equally many blocks.
std::vector<std::vector<ListedPiece>> expected_even_pieces(const DecodeItemsCase& work) {
  const DecodeSequence sequence = sequences_of(work)[0];
  const int item_blocks = work.num_blocks / work.shape.num_kv_heads;
  const int share = even_decode_share(sequence.num_tiles, item_blocks, kMaxWholeTiles,
                                      kLeastSplitTiles, [&](int n) { return n / item_blocks; });
  const int count = std::max(1, (sequence.num_tiles + share - 1) / share);
  std::vector<std::vector<ListedPiece>> pieces(static_cast<size_t>(work.num_blocks));
  for (int kv_head = 0; kv_head < work.shape.num_kv_heads; ++kv_head) {
    for (int index = 0; index < count; ++index) {
      const int first_block = kv_head * item_blocks;
      pieces[static_cast<size_t>(first_block + index)].push_back(
          {.sequence = 0,
           .kv_head = kv_head,
           .first_row = 0,
           .num_rows = query_length(work, 0) * work.shape.heads_per_kv_head,
           .tile_begin = sequence.first_tile + index * share,
           .tile_end = sequence.first_tile + std::min((index + 1) * share, sequence.num_tiles),
           .index = index,
           .first_block = first_block,
           .count = count});
    }
  }
  return pieces;
}

class DecodeItemsTest : public testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (status.num_devices == 0) GTEST_SKIP() << status.problem;
  }

  static void check(const DecodeItemsCase& work) {
    const auto expected = work.is_even ? expected_even_pieces(work) : expected_pieces(work);
    for (const int known_sequences : {32, 64}) {
      const auto listed = listed_pieces(work, known_sequences);
      for (size_t block = 0; block < expected.size(); ++block) {
        ASSERT_EQ(listed[block].size(), expected[block].size()) << "block " << block;
        for (size_t i = 0; i < expected[block].size(); ++i) {
          ASSERT_TRUE(listed[block][i] == expected[block][i])
              << "block " << block << ", piece " << i << ": tiles " << listed[block][i].tile_begin
              << " to " << listed[block][i].tile_end << " of sequence " << listed[block][i].sequence
              << ", not " << expected[block][i].tile_begin << " to " << expected[block][i].tile_end
              << " of " << expected[block][i].sequence;
        }
      }
    }
  }
};

TEST_F(DecodeItemsTest, BlocksReadWhatTheHostWouldGiveThem) {
  for (const int num_kv_heads : {1, 2, 3, 8, 40}) {
    for (const int num_sequences : {1, 2, 3, 16, 17, 32, 33, 64, 65, 500}) {
      for (const int longest : {0, 1, 64, 65, 600, 4096, 100001}) {
        SCOPED_TRACE(testing::Message() << num_sequences << " sequences of up to " << longest
                                        << " tokens, " << num_kv_heads << " KV heads");
        const auto one = [](int) { return 1; };
        const auto equal = [&](int) { return longest; };
        const auto few = [](int i) { return i % 5; };
        const auto ragged = [&](int i) { return i % 3 == 0 ? longest : longest / (i + 1); };
        ASSERT_NO_FATAL_FAILURE(
            check(make_case(num_kv_heads, num_sequences, kNoWindow, one, equal)));
        ASSERT_NO_FATAL_FAILURE(
            check(make_case(num_kv_heads, num_sequences, kNoWindow, few, ragged)));
        ASSERT_NO_FATAL_FAILURE(check(make_case(num_kv_heads, num_sequences, 100, few, ragged)));
        const auto many = [](int i) { return i % 7 * 50; };
        DecodeItemsCase whole = make_case(num_kv_heads, num_sequences, 100, many, ragged);
        whole.shape.keeps_whole = true;
        ASSERT_NO_FATAL_FAILURE(check(whole));
      }
    }
  }
}

TEST_F(DecodeItemsTest, OneSequenceIsDividedEvenly) {
  for (const int num_kv_heads : {1, 2, 8, 66}) {
    for (const int length : {0, 1, 512, 513, 4096, 4097, 100001}) {
      SCOPED_TRACE(testing::Message() << length << " tokens, " << num_kv_heads << " KV heads");
      DecodeItemsCase work = make_case(
          num_kv_heads, 1, kNoWindow, [](int) { return 1; }, [&](int) { return length; });
      work.is_even = true;
      ASSERT_NO_FATAL_FAILURE(check(work));
    }
  }
}

}  // namespace
}  // namespace tessera

#endif
