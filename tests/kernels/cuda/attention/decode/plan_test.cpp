#include "kernels/cuda/attention/decode/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/kernels/cuda/attention/decode/no_window.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

constexpr int kBlocks = kH200.num_multiprocessors;

DecodeAttentionShape shape(int64_t num_heads, int64_t num_kv_heads, int64_t head_dim) {
  return {.num_heads = num_heads,
          .num_kv_heads = num_kv_heads,
          .head_dim = head_dim,
          .page_size = 64,
          .gpu = kH200};
}

TEST(DecodePlanTest, TakesTheCopyEngineWhereItCan) {
  for (const int64_t head_dim : {64, 96, 128, 256}) {
    EXPECT_TRUE(plan_decode_attention(shape(32, 8, head_dim)).uses_copy_engine);
  }
  for (const int64_t head_dim : {32, 80}) {
    const auto plan = plan_decode_attention(shape(32, 8, head_dim));
    EXPECT_FALSE(plan.uses_copy_engine);
    EXPECT_THAT(describe(plan), testing::HasSubstr("rows of 128 bytes or more"));
  }
  DecodeAttentionShape older = shape(32, 8, 128);
  older.gpu.compute_capability = 80;
  EXPECT_FALSE(plan_decode_attention(older).uses_copy_engine);
}

TEST(DecodePlanTest, TakesTheCopyEngineForRowsOf128Bytes) {
  for (const int64_t head_dim : {32, 64, 96, 128, 256}) {
    DecodeAttentionShape fp8 = shape(32, 8, head_dim);
    fp8.is_fp8 = true;
    const auto plan = plan_decode_attention(fp8);
    EXPECT_EQ(plan.uses_copy_engine, head_dim % 128 == 0);
    EXPECT_GE(plan.num_stages, 4);
    EXPECT_LE(plan.num_stages * decode_stage_bytes(head_dim), fp8.gpu.shared_bytes);
  }
}

TEST(DecodePlanTest, IsNarrowWhereAnItemHasEightRowsAtMost) {
  EXPECT_TRUE(plan_decode_attention(shape(32, 8, 128)).is_narrow);
  EXPECT_TRUE(plan_decode_attention(shape(8, 1, 256)).is_narrow);
  EXPECT_FALSE(plan_decode_attention(shape(9, 1, 128)).is_narrow);
  EXPECT_FALSE(plan_decode_attention(shape(32, 8, 80)).is_narrow);  // read by loads
  DecodeAttentionShape queries = shape(32, 8, 128);
  queries.max_query_length = 2;
  EXPECT_TRUE(plan_decode_attention(queries).is_narrow);
  queries.max_query_length = 3;
  EXPECT_FALSE(plan_decode_attention(queries).is_narrow);
}

// Or a decode would be computed otherwise in a step with a prompt than in one without.
TEST(DecodePlanTest, IsNeverNarrowIfBatchInvariant) {
  for (int64_t group = 1; group <= 20; ++group) {
    for (int64_t query_length = 1; query_length <= kMaxDecodeQueryLength; ++query_length) {
      DecodeAttentionShape heads = shape(group, 1, 128);
      heads.max_query_length = query_length;
      heads.gpu.choice = KernelChoice::kBatchInvariant;
      EXPECT_FALSE(plan_decode_attention(heads).is_narrow) << group << " heads, " << query_length;
    }
  }
}

TEST(DecodePlanTest, OnlyTheCopyEngineOfHeadsOf64FillsTwelveTiles) {
  EXPECT_EQ(plan_decode_attention(shape(32, 8, 64)).num_stages, 12);
  EXPECT_EQ(plan_decode_attention(shape(32, 8, 128)).num_stages, 6);
  EXPECT_EQ(plan_decode_attention(shape(16, 8, 256)).num_stages, 3);
  EXPECT_EQ(plan_decode_attention(shape(32, 8, 96)).num_stages, 8);
  for (const int64_t head_dim : {32, 80}) {  // read by loads
    EXPECT_LE(plan_decode_attention(shape(32, 8, head_dim)).num_stages, 8);
  }
  DecodeAttentionShape older = shape(32, 8, 64);
  older.gpu.compute_capability = 80;
  EXPECT_LE(plan_decode_attention(older).num_stages, 8);
  for (const int64_t head_dim : {64, 128}) {
    DecodeAttentionShape fp8 = shape(32, 8, head_dim);
    fp8.is_fp8 = true;
    EXPECT_LE(plan_decode_attention(fp8).num_stages, 8);
  }
}

TEST(DecodePlanTest, BoxesDividePagesAndTiles) {
  DecodeAttentionShape pages = shape(32, 8, 128);
  for (const auto& [page_size, box_tokens] : std::initializer_list<std::pair<int64_t, int64_t>>{
           {16, 16}, {32, 32}, {48, 16}, {64, 64}, {96, 32}, {128, 64}, {1024, 64}}) {
    pages.page_size = page_size;
    EXPECT_EQ(plan_decode_attention(pages).box_tokens, box_tokens);
  }
}

// 64 KiB on the way per multiprocessor is what full bandwidth takes.
TEST(DecodePlanTest, UsualHeadsKeepTheMemoryBusy) {
  for (const auto& [num_heads, num_kv_heads, head_dim] :
       std::initializer_list<std::tuple<int64_t, int64_t, int64_t>>{
           {32, 8, 128}, {64, 8, 128}, {32, 32, 128}, {32, 8, 64}, {16, 8, 256}}) {
    const auto plan = plan_decode_attention(shape(num_heads, num_kv_heads, head_dim));
    EXPECT_GE(plan.num_stages * decode_stage_bytes(2 * head_dim), 128 << 10);
  }
}

// Whatever the heads and the GPU: the ring fits, every set of warps has stages of its own, and the
// partial results fit the workspace that was promised for longer queries.
void expect_plans_fit(DecodeAttentionShape heads) {
  heads.max_query_length = kMaxDecodeQueryLength;
  const int64_t promised = decode_partial_elements(heads);
  for (int64_t query_length = 1; query_length <= kMaxDecodeQueryLength; ++query_length) {
    SCOPED_TRACE(testing::Message() << query_length << " queries");
    heads.max_query_length = query_length;
    const auto plan = plan_decode_attention(heads);
    EXPECT_LE(plan.shared_bytes + kDecodeStaticBytes, heads.gpu.shared_bytes);
    EXPECT_GE(plan.num_stages, 1);
    const int sets = decode_tile_sets(heads.head_dim, heads.row_bytes(), plan.row_tiles);
    EXPECT_EQ(plan.num_stages % sets, 0);
    EXPECT_GE(plan.row_tiles * DecodeAttentionPlan::kTileRows, plan.item_rows);
    EXPECT_EQ(decode_warps(heads.head_dim) % plan.row_tiles, 0);
    EXPECT_LE(num_decode_slots(kBlocks) * plan.item_rows * (heads.head_dim + 1), promised);
  }
}

TEST(DecodePlanTest, FitsSharedMemoryAndWorkspace) {
  for (const int64_t shared_bytes : {101376, 166912, 232448}) {
    for (const int64_t head_dim : {32, 64, 80, 96, 128, 256}) {
      for (const int64_t group : {1, 2, 3, 4, 7, 8, 16, 17, 40, 128}) {
        for (const bool is_fp8 : {false, true}) {
          SCOPED_TRACE(testing::Message() << shared_bytes << " bytes, head_dim " << head_dim
                                          << ", group " << group << (is_fp8 ? ", fp8" : ""));
          DecodeAttentionShape heads = shape(2 * group, 2, head_dim);
          heads.gpu.shared_bytes = shared_bytes;
          heads.is_fp8 = is_fp8;
          expect_plans_fit(heads);
        }
      }
    }
  }
}

struct Lengths {
  int query_length;
  int context_length;
};

struct Item {
  int begin;  // of its payload
  int num_tiles;
};

class DecodePartition {
 public:
  DecodePartition(const DecodeItemShape& shape, const std::vector<Lengths>& lengths) {
    std::vector<DecodeSequence> sequences;
    for (const auto& [query_length, context_length] : lengths) {
      sequences.push_back(decode_sequence(shape, query_length, context_length));
    }
    share = decode_share(sequences, kBlocks, shape.keeps_whole);
    int begin = 0;
    for (const DecodeSequence& sequence : sequences) {
      for (int i = 0; i < sequence.num_items; ++i) {
        items.push_back({begin, sequence.num_tiles});
        begin += share.payload(sequence.num_tiles);
      }
    }
    payload = begin;
  }

  int most_tiles() const {
    std::vector<int> tiles(kBlocks);
    for (const Item& item : items) {
      for (int block = 0; block < kBlocks; ++block) {
        const DecodeTiles own = decode_tiles(share, item.begin, item.num_tiles, block);
        tiles[static_cast<size_t>(block)] += own.end - own.begin;
      }
    }
    return *std::ranges::max_element(tiles);
  }

  // Every tile is read once, by the blocks that piece_owners() names, none of which is idle; no
  // two pieces share a slot, no two split items a counter.
  void check() const {
    EXPECT_LE(payload, kBlocks * share.tiles);
    std::set<int> slots, counters;
    for (const Item& item : items) {
      if (item.num_tiles == 0) continue;
      const PieceOwners pieces = piece_owners(share, item.begin, item.num_tiles);
      int next = 0;
      for (int block = 0; block < kBlocks; ++block) {
        const DecodeTiles own = decode_tiles(share, item.begin, item.num_tiles, block);
        const bool is_piece =
            block >= pieces.first_block && block < pieces.first_block + pieces.count;
        // Millions of these: an assertion would take longer than what it checks.
        if ((own.begin < own.end) != is_piece) FAIL() << "block " << block;
        if (!is_piece) continue;
        ASSERT_EQ(own.begin, next);
        next = own.end;
        if (pieces.count == 1) continue;
        const int slot = decode_slot(block, block == pieces.first_block);
        ASSERT_LT(slot, num_decode_slots(kBlocks));
        ASSERT_TRUE(slots.insert(slot).second);
      }
      ASSERT_EQ(next, item.num_tiles);
      if (pieces.count > 1) {
        ASSERT_TRUE(counters.insert(pieces.first_block).second);
      }
    }
  }

  DecodeShare share;
  std::vector<Item> items;
  int payload = 0;
};

DecodeItemShape item_shape(int num_kv_heads) {
  return {
      .heads_per_kv_head = 4, .num_kv_heads = num_kv_heads, .item_rows = 4, .window = kNoWindow};
}

TEST(DecodePartitionTest, ReadsEveryTileOnce) {
  for (const int num_kv_heads : {1, 2, 3, 8, 40, 128}) {
    for (const int num_sequences : {1, 2, 3, 16, 17, 32, 33, 64, 500}) {
      for (const int longest : {0, 1, 64, 65, 600, 4096, 100001}) {
        SCOPED_TRACE(testing::Message() << num_sequences << " sequences of up to " << longest
                                        << " tokens, " << num_kv_heads << " KV heads");
        std::vector<Lengths> equal, ragged;
        for (int i = 0; i < num_sequences; ++i) {
          equal.push_back({1, longest});
          ragged.push_back({i % 5, i % 3 == 0 ? longest : longest / (i + 1)});
        }
        ASSERT_NO_FATAL_FAILURE(DecodePartition(item_shape(num_kv_heads), equal).check());
        ASSERT_NO_FATAL_FAILURE(DecodePartition(item_shape(num_kv_heads), ragged).check());
        DecodeItemShape whole = item_shape(num_kv_heads);
        whole.keeps_whole = true;
        ASSERT_NO_FATAL_FAILURE(DecodePartition(whole, equal).check());
        ASSERT_NO_FATAL_FAILURE(DecodePartition(whole, ragged).check());
      }
    }
  }
}

TEST(DecodePartitionTest, WholeItemsAreReadByOneBlockFromAMultipleOfEightTiles) {
  DecodeItemShape shape = item_shape(8);
  shape.keeps_whole = true;
  for (const int num_sequences : {1, 3, 17, 500}) {
    const DecodePartition partition(
        shape, std::vector<Lengths>(static_cast<size_t>(num_sequences), {1, 5000}));
    for (const Item& item : partition.items) {
      EXPECT_EQ(piece_owners(partition.share, item.begin, item.num_tiles).count, 1);
    }
  }
  shape.window = 100;
  for (const int context_length : {1, 100, 600, 612, 5000}) {
    for (const int query_length : {1, 2, 300}) {
      EXPECT_EQ(decode_sequence(shape, query_length, context_length).first_tile % 8, 0);
    }
  }
}

TEST(DecodePartitionTest, AlignsItemsWhenFewBlocksAreLeftIdle) {
  EXPECT_TRUE(DecodePartition(item_shape(8), {{1, 4096}}).share.is_aligned());
  EXPECT_EQ(DecodePartition(item_shape(8), {{1, 4096}}).share.tiles, 4);  // 16 blocks per KV head
  EXPECT_TRUE(
      DecodePartition(item_shape(8), std::vector<Lengths>(16, {1, 32768})).share.is_aligned());
  // 80 items for 132 blocks: whole items would leave 52 idle.
  EXPECT_FALSE(
      DecodePartition(item_shape(8), std::vector<Lengths>(10, {1, 32768})).share.is_aligned());
  EXPECT_FALSE(
      DecodePartition(item_shape(8), std::vector<Lengths>(64, {1, 32768})).share.is_aligned());
}

TEST(DecodePartitionTest, SharesTheTilesEqually) {
  for (const int num_sequences : {1, 3, 8, 10, 16, 64, 200}) {
    const DecodePartition partition(
        item_shape(8), std::vector<Lengths>(static_cast<size_t>(num_sequences), {1, 32768}));
    const int ideal = (num_sequences * 8 * 512 + kBlocks - 1) / kBlocks;
    EXPECT_LE(partition.most_tiles(), ideal + ideal / 4 + 2) << num_sequences;
  }
}

// 512 items for 132 blocks: four each, where equal shares would be 3.88 and cut 131 items.
TEST(DecodePartitionTest, ItemsStayWholeWhenBlocksHaveSeveral) {
  for (const int context_length : {300, 512, 1024, 1100, 2048, 4096, 8192, 32768}) {
    const DecodePartition partition(item_shape(8), std::vector<Lengths>(64, {1, context_length}));
    for (const Item& item : partition.items) {
      EXPECT_EQ(piece_owners(partition.share, item.begin, item.num_tiles).count, 1);
    }
    EXPECT_EQ(partition.most_tiles(), 4 * partition.items[0].num_tiles) << context_length;
  }
}

TEST(DecodePartitionTest, ShortContextsAreNotSplit) {
  for (const int context_length : {1, 64, 512}) {
    for (const Item& item : DecodePartition(item_shape(8), {{1, context_length}}).items) {
      const DecodePartition partition(item_shape(8), {{1, context_length}});
      EXPECT_EQ(piece_owners(partition.share, item.begin, item.num_tiles).count, 1);
    }
  }
}

TEST(DecodePartitionTest, EvenSharesOfOneSequenceFitItsBlocks) {
  for (const int item_blocks : {2, 3, 16, 66, 132}) {
    for (const int num_tiles : {0, 1, 8, 9, 17, 64, 65, 1000, 16384}) {
      const int share =
          even_decode_share(num_tiles, item_blocks, 8, 2, [&](int n) { return n / item_blocks; });
      EXPECT_GE(share * item_blocks, num_tiles);
      EXPECT_LE(share, std::max(8, num_tiles / item_blocks + 1));
      EXPECT_GE(share, std::min(num_tiles, 2));
    }
  }
  const auto sixteen = [](int n) { return n / 16; };
  EXPECT_EQ(even_decode_share(8, 16, 8, 2, sixteen), 8);  // not split
  EXPECT_EQ(even_decode_share(64, 16, 8, 2, sixteen), 4);
  EXPECT_EQ(even_decode_share(8, 16, 2, 2, sixteen), 2);
}

TEST(DecodePartitionTest, WindowsSkipTiles) {
  DecodeItemShape windowed = item_shape(1);
  windowed.window = 100;
  // Queries 897 to 899 of 900 tokens see tokens from 798 on.
  const DecodeSequence sequence = decode_sequence(windowed, 3, 900);
  EXPECT_EQ(sequence.first_tile, 798 / 64);
  EXPECT_EQ(sequence.num_tiles, 15 - 798 / 64);
  EXPECT_EQ(sequence.row_blocks, 3);
}

}  // namespace
}  // namespace tessera
