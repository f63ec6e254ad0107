#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "tests/kernels/altered_block.h"
#include "tests/kernels/cuda/decode_step/decode_shapes.h"

namespace tessera {
namespace {

FusedDecodeShape tiny() {
  FusedDecodeShape shape = kLlama8B;
  shape.hidden_size = 256;
  shape.intermediate_size = 256;
  shape.vocab_size = 1003;
  shape.num_heads = 4;
  shape.num_kv_heads = 1;
  shape.head_dim = 64;
  return shape;
}

// Steps of few tokens whose contexts may be read once for each token.
TEST(FusedDecodePlanTest, TakesStepsOfFewTokensThatRereadLittle) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  ASSERT_TRUE(plan.runs()) << plan.problem;
  const auto takes = [&](int64_t tokens, int64_t sequences, int64_t context) {
    return takes_step(plan, {.num_tokens = tokens,
                             .num_sequences = sequences,
                             .num_decodes = sequences,
                             .max_context_length = context});
  };
  EXPECT_TRUE(takes(1, 1, 1'000'000));
  EXPECT_TRUE(takes(8, 8, 1'000'000));
  EXPECT_FALSE(takes(9, 9, 10));
  EXPECT_FALSE(takes(0, 0, 0));
  // A token of context has 4 KiB in a layer.
  EXPECT_TRUE(takes(8, 1, kRereadBytes / 4096 / 7));
  EXPECT_FALSE(takes(8, 1, kRereadBytes / 4096 / 7 + 1));
  EXPECT_TRUE(takes(8, 7, kRereadBytes / 4096));
  EXPECT_FALSE(takes(8, 7, kRereadBytes / 4096 + 1));
  // A sequence of many tokens is no decode.
  EXPECT_FALSE(takes_step(
      plan, {.num_tokens = 8, .num_sequences = 1, .num_decodes = 0, .max_context_length = 8}));
}

FusedDecodeShape of_many_kv_heads() { return shape_of(4096, 11008, 32, 32, 128); }

// Steps whose pieces of attention a block has room for, whatever the lengths of other sequences.
TEST(FusedDecodePlanTest, TakesStepsOfManyKvHeadsWhileContextsAreShort) {
  const FusedDecodePlan plan = plan_fused_decode({}, of_many_kv_heads());
  ASSERT_EQ(plan.max_tokens, 8);
  const auto longest = [&](int64_t tokens) {
    int64_t context = 1;
    const auto takes = [&] {
      return takes_step(plan, {.num_tokens = tokens,
                               .num_sequences = tokens,
                               .num_decodes = tokens,
                               .max_context_length = context});
    };
    while (takes() && context < 1'000'000) context += kDecodeTileTokens;
    return context - 1;
  };
  EXPECT_EQ(longest(1), 1'000'000);
  EXPECT_EQ(longest(2), longest(1)) << "64 items";
  EXPECT_EQ(longest(3), 11'008);
  EXPECT_EQ(longest(8), 4'032);
}

TEST(FusedDecodePlanTest, NoBlockHasMorePiecesThanItHasRoomFor) {
  std::mt19937 random(1);
  const FusedDecodePlan plan = plan_fused_decode({}, of_many_kv_heads());
  int64_t most = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto tokens = static_cast<int64_t>(random() % 7 + 2);
    const int longest = 1 << random() % 15;
    std::vector<DecodeSequence> sequences;
    int64_t max_context_length = 0;
    for (int64_t i = 0; i < tokens; ++i) {
      const int context = random() % 2 == 0 ? 1 : static_cast<int>(random() % longest) + 1;
      max_context_length = std::max<int64_t>(max_context_length, context);
      sequences.push_back(decode_sequence({.heads_per_kv_head = 1,
                                           .num_kv_heads = plan.num_groups,
                                           .item_rows = 1,
                                           .window = round % 2 == 0 ? 1 << 30 : 500},
                                          1, context));
    }
    const DecodeShare share = decode_share(sequences, plan.num_blocks, false);
    std::vector<int64_t> pieces(static_cast<size_t>(plan.num_blocks), 0);
    int item_begin = 0;
    for (const DecodeSequence& sequence : sequences) {
      for (int item = 0; item < sequence.num_items; ++item) {
        for (int block = 0; block < plan.num_blocks; ++block) {
          const auto [begin, end] = decode_tiles(share, item_begin, sequence.num_tiles, block);
          if (begin < end) ++pieces[static_cast<size_t>(block)];
        }
        item_begin += share.payload(sequence.num_tiles);
      }
    }
    const int64_t bound = most_fused_pieces(plan, {.num_tokens = tokens,
                                                   .num_sequences = tokens,
                                                   .num_decodes = tokens,
                                                   .max_context_length = max_context_length});
    const int64_t largest = *std::ranges::max_element(pieces);
    ASSERT_LE(largest, bound) << "round " << round;
    if (bound <= kMaxFusedPieces) most = std::max(most, largest);
  }
  EXPECT_GT(most, kMaxFusedPieces / 2) << "the bound is not much too high";
}

// The items that blocks have and the items that they claim are every row of a product once.
TEST(FusedDecodePlanTest, ItemsCoverEachRowOnce) {
  for (const FusedDecodeShape& shape :
       {kLlama8B, llama_1b(), tiny(), shape_of(3072, 8192, 32, 32, 96)}) {
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    ASSERT_TRUE(plan.runs()) << plan.problem;
    for (const FusedProduct& product : plan.products) {
      const int claimed = product.num_items - product.static_items * plan.num_blocks;
      EXPECT_GE(claimed, 0);
      EXPECT_TRUE(product.claims_many != 0 || claimed < plan.num_blocks);
      std::vector<int> times(static_cast<size_t>(product.rows + kUnitRows), 0);
      for (int item = 0; item < product.num_items; ++item) {
        for (int half = 0; half <= product.is_paired; ++half) {
          const int row = product.row(item, half);
          ASSERT_LT(row, product.rows);
          for (int r = row; r < row + kUnitRows; ++r) ++times[static_cast<size_t>(r)];
        }
      }
      times.resize(static_cast<size_t>(product.rows));
      EXPECT_THAT(times, testing::Each(1)) << product.rows << " rows";
    }
  }
}

TEST(FusedDecodePlanTest, LongProductsAreClaimedAtTheirEnd) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  EXPECT_EQ(plan.products[kGateUp].static_items, 1792 / 132 - kClaimedItems);
  EXPECT_EQ(plan.products[kGateUp].claims_many, 1);
  EXPECT_EQ(plan.products[kDown].static_items, 512 / 132);
  EXPECT_EQ(plan.products[kDown].claims_many, 0);
}

TEST(FusedDecodePlanTest, TakesFp8Pages) {
  FusedDecodeShape shape = kLlama8B;
  shape.pages = DType::kFloat8E4M3;
  const FusedDecodePlan plan = plan_fused_decode({}, shape);
  EXPECT_EQ(plan.problem, "");
  EXPECT_TRUE(plan.has_fp8_pages);
  EXPECT_EQ(plan_fused_decode(altered_block("qk_norm", 1), shape).problem, "");
  EXPECT_EQ(plan_fused_decode(altered_block("norm_placement", 1), shape).problem, "");
  shape.page_size = 16;
  EXPECT_EQ(plan_fused_decode({}, shape).problem, "pages of 16 tokens are no multiple of 32");
  shape = llama_1b();
  shape.pages = DType::kFloat8E4M3;
  EXPECT_EQ(plan_fused_decode({}, shape).problem, "");
  shape.page_size = 32;
  EXPECT_EQ(plan_fused_decode({}, shape).problem, "pages of 32 tokens are no multiple of 64");
  shape.pages = DType::kFloat16;
  EXPECT_EQ(plan_fused_decode({}, shape).problem,
            "it keeps keys and values in bfloat16 or float8_e4m3, not in float16");
}

// The exchange relies on it: a block's words in the residual stream say that it is done.
TEST(FusedDecodePlanTest, EveryBlockHasItemsOfTheResidualStream) {
  for (const FusedDecodeShape& shape : {kLlama8B, llama_1b(), tiny()}) {
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    EXPECT_GE(plan.products[kOProj].static_items, 1);
    EXPECT_GE(plan.products[kDown].static_items, 1);
  }
}

TEST(FusedDecodePlanTest, PairsAreHalvesOfHeadsAndGateWithUp) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedProduct& qkv = plan.products[kQkv];
  EXPECT_EQ(qkv.row(0, 1) - qkv.row(0, 0), 64);
  EXPECT_EQ(qkv.row(7, 0), 56);
  EXPECT_EQ(qkv.row(8, 0), 128);  // the next head
  const FusedDecodePlan of_96 = plan_fused_decode({}, shape_of(3072, 8192, 32, 32, 96));
  EXPECT_EQ(of_96.products[kQkv].row(5, 0), 40);
  EXPECT_EQ(of_96.products[kQkv].row(5, 1), 40 + 48);
  EXPECT_EQ(of_96.products[kQkv].row(6, 0), 96);
  const FusedProduct& gate_up = plan.products[kGateUp];
  EXPECT_EQ(gate_up.row(5, 0), 40);
  EXPECT_EQ(gate_up.row(5, 1), 40 + 14336);
}

TEST(FusedDecodePlanTest, LayoutsDoNotOverlap) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedExchangeLayout layout = fused_exchange_layout(plan, 3);
  EXPECT_EQ(layout.residual_mid - layout.residual_in, 3 * 4096);
  EXPECT_EQ(layout.weighted_in - layout.residual_mid, 3 * 4096);
  EXPECT_EQ(layout.weighted_mid - layout.weighted_in, 3 * 2048);
  EXPECT_EQ(layout.squares_in - layout.weighted_mid, 3 * 2048);
  EXPECT_EQ(layout.squares_mid - layout.squares_in, 3 * kSquareShares);
  EXPECT_EQ(layout.qkv - layout.squares_mid, 3 * kSquareShares);
  EXPECT_EQ(layout.attention_out - layout.qkv, 3 * 6144);
  EXPECT_EQ(layout.hidden - layout.attention_out, 3 * 2048);
  EXPECT_EQ(layout.size - layout.hidden, 3 * 7168);
  EXPECT_EQ(fused_partial_words(4, 128), 4 * 128 + 4);
}

TEST(FusedDecodePlanTest, ReplicasOfASingleTokenDoNotOverlap) {
  const FusedDecodePlan plan = plan_fused_decode({}, kLlama8B);
  const FusedExchangeLayout layout = fused_exchange_layout(plan, 1);
  const int replicas = exchange_replicas(1);
  EXPECT_GT(replicas, 1);
  EXPECT_EQ(layout.weighted_mid - layout.weighted_in, replicas * 2048);
  EXPECT_EQ(layout.squares_in - layout.weighted_mid, replicas * 2048);
  EXPECT_EQ(layout.squares_mid - layout.squares_in, replicas * kSquareShares);
  EXPECT_EQ(layout.qkv - layout.squares_mid, replicas * kSquareShares);
  EXPECT_EQ(layout.attention_out - layout.qkv, 6144);
  EXPECT_EQ(layout.hidden - layout.attention_out, replicas * 2048);
  EXPECT_EQ(layout.size - layout.hidden, replicas * 7168);
}

TEST(FusedDecodePlanTest, PartsOfTheResidualStreamDoNotOverlap) {
  const BlockSpec gemma{.norm_placement = NormPlacement::kPreAndPost};
  const FusedDecodePlan plan = plan_fused_decode(gemma, kLlama8B);
  EXPECT_EQ(plan.stream_parts, 2);
  EXPECT_EQ(plan_fused_decode({}, kLlama8B).stream_parts, 1);
  const int replicas = exchange_replicas(1);
  const FusedExchangeLayout layout = fused_exchange_layout(plan, 1);
  EXPECT_EQ(layout.weighted_mid - layout.weighted_in, replicas * 2 * 2048);
  EXPECT_EQ(layout.squares_in - layout.weighted_mid, replicas * 2 * 2048);
  EXPECT_EQ(layout.squares_mid - layout.squares_in, replicas * kStreamSums * kSquareShares);
  EXPECT_EQ(layout.qkv - layout.squares_mid, replicas * kStreamSums * kSquareShares);
  // Five chunks take a round of eight places for each part.
  FusedDecodeShape narrow = kLlama8B;
  narrow.hidden_size = narrow.intermediate_size = 5 * kUnitFeatures;
  narrow.num_heads = narrow.num_kv_heads = 8;
  const FusedSharedMemory memory =
      fused_shared_memory(plan_fused_decode(gemma, narrow), 1, 128, narrow.gpu.shared_bytes);
  EXPECT_GE(memory.input_bytes, 2 * kFusedWarps * kUnitFeatures * 2);
  // Several tokens' parts travel apart too, but blocks keep one of them: they join them.
  const FusedExchangeLayout several = fused_exchange_layout(plan, 3);
  EXPECT_EQ(several.weighted_mid - several.weighted_in, 3 * 2 * 2048);
  EXPECT_EQ(several.squares_in - several.weighted_mid, 3 * 2 * 2048);
  EXPECT_EQ(several.squares_mid - several.squares_in, 3 * kStreamSums * kSquareShares);
  EXPECT_EQ(several.qkv - several.squares_mid, 3 * kStreamSums * kSquareShares);
  for (const FusedInstance instance : {FusedInstance::kPreNorm, FusedInstance::kAnyBlock}) {
    EXPECT_FALSE(joins_parts(1, instance));
    EXPECT_EQ(joins_parts(8, instance), stream_parts(instance) == 2);
  }
  EXPECT_EQ(multiplied_parts(1, 2), 2);
  EXPECT_EQ(multiplied_parts(8, 2), 1);
}

// Warps do not wait for each other between products, so none may write where another reads.
TEST(FusedDecodePlanTest, PlacesOfKeptChunksAreTheSameWarpsInEveryProduct) {
  for (int num_chunks = 1; num_chunks <= 40; ++num_chunks) {
    std::set<int> places;
    for (int warp = 0; warp < kFusedWarps; ++warp) {
      for (int part = 0; part < 2; ++part) {
        for (int i = 0; warp + i * kFusedWarps < num_chunks; ++i) {
          const int place = kept_chunk(warp, i, part, num_chunks);
          EXPECT_EQ(place % kFusedWarps, warp);
          EXPECT_LT(place, 2 * chunk_rounds(num_chunks) * kFusedWarps);
          EXPECT_TRUE(places.insert(place).second) << "place " << place << " twice";
        }
      }
    }
  }
}

TEST(FusedDecodePlanTest, LightLayersAskForLessAtATime) {
  const FusedDecodePlan small = plan_fused_decode({}, llama_1b());
  EXPECT_EQ(small.most_under_way, kFewUnderWay);
  const FusedDecodePlan large = plan_fused_decode({}, kLlama8B);
  EXPECT_EQ(large.most_under_way, kMaxFusedStages);
  FusedDecodeShape uneven = llama_1b();
  uneven.hidden_size = 3072;  // 12 chunks for 8 warps
  EXPECT_EQ(plan_fused_decode({}, uneven).most_under_way, kMaxFusedStages);
}

TEST(FusedDecodePlanTest, SharedMemoryHoldsTheRings) {
  for (const DType pages : {DType::kBFloat16, DType::kFloat8E4M3}) {
    SCOPED_TRACE(to_string(pages));
    FusedDecodeShape shape = kLlama8B;
    shape.pages = pages;
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    EXPECT_EQ(plan.max_tokens, 8);
    const int64_t limit = shape.gpu.shared_bytes;
    const int stages = pages == DType::kBFloat16 ? 6 : 5;
    EXPECT_EQ(fused_shared_memory(plan, 1, 128, limit).rings.stages, stages);
    EXPECT_GE(fused_shared_memory(plan, 8, 128, limit).rings.stages, kLeastFusedStages);
    EXPECT_LE(shared_bytes(plan, 1, 128), limit);
    EXPECT_LE(shared_bytes(plan, 8, 128), limit);
  }
}

TEST(FusedDecodePlanTest, InputsAreKeptForManyPasses) {
  const FusedDecodePlan plan = plan_fused_decode({}, llama_1b());
  EXPECT_FALSE(plan.products[kQkv].keeps_inputs(plan.num_blocks));
  EXPECT_TRUE(plan.products[kGateUp].keeps_inputs(plan.num_blocks));
  EXPECT_TRUE(plan.products[kLmHead].keeps_inputs(plan.num_blocks));
  FusedProduct few = plan.products[kQkv];
  few.static_items = 0;
  EXPECT_TRUE(few.keeps_inputs(plan.num_blocks)) << "some blocks have no item";
  const FusedDecodePlan large = plan_fused_decode({}, kLlama8B);
  EXPECT_TRUE(large.products[kQkv].keeps_inputs(large.num_blocks)) << "two chunks for a warp";
}

TEST(FusedDecodePlanTest, TakesTheInstanceThatAsksForLeast) {
  const auto instance = [](const BlockSpec& block, int64_t head_dim, bool has_fp8_pages = false) {
    return fused_instance(fused_block(block, head_dim), has_fp8_pages, head_dim);
  };
  BlockSpec qwen3{.layers = std::vector<LayerSpec>(2)};
  qwen3.qk_norm = QkNorm::kPerHead;
  const BlockSpec llama{.layers = std::vector<LayerSpec>(2)};
  EXPECT_EQ(instance(llama, 128), FusedInstance::kLlama);
  EXPECT_EQ(instance(llama, 64), FusedInstance::kLlama);
  EXPECT_EQ(instance(llama, 256), FusedInstance::kAnyBlock);
  EXPECT_EQ(instance(qwen3, 128), FusedInstance::kPreNorm);
  EXPECT_EQ(instance(qwen3, 256), FusedInstance::kAnyBlock);
  EXPECT_EQ(instance(gemma(2, 64), 128), FusedInstance::kAnyBlock);
  EXPECT_EQ(instance(llama, 64, true), FusedInstance::kLlamaFp8);
  EXPECT_EQ(instance(qwen3, 64, true), FusedInstance::kPreNormFp8);
  EXPECT_EQ(instance(qwen3, 256, true), FusedInstance::kAnyBlockFp8);
  EXPECT_EQ(instance(gemma(2, 64), 128, true), FusedInstance::kAnyBlockFp8);
}

TEST(FusedDecodePlanTest, LayersOfTwoKindsAreToldApart) {
  const BlockSpec block = gemma(42, 4096);
  const FusedDecodePlan plan = plan_fused_decode(block, shape_of(3584, 14336, 16, 8, 256));
  EXPECT_EQ(plan.num_kinds, 2);
  EXPECT_EQ(plan.num_windows, 2);
  for (int layer = 0; layer < 42; ++layer) EXPECT_EQ(plan.block.kind(layer), layer % 2) << layer;
  BlockSpec same_window = block;
  for (LayerSpec& layer : same_window.layers) layer = {};
  same_window.layers[3].rope_table.reset();
  const FusedDecodePlan same = plan_fused_decode(same_window, shape_of(3584, 14336, 16, 8, 256));
  EXPECT_EQ(same.num_kinds, 2);
  EXPECT_EQ(same.num_windows, 1);

  BlockSpec three_kinds = block;
  three_kinds.layers[5].sliding_window = 7;
  EXPECT_THAT(plan_fused_decode(three_kinds, kLlama8B).problem, testing::HasSubstr("3 kinds"));
  EXPECT_THAT(plan_fused_decode(gemma(130, 4096), kLlama8B).problem,
              testing::HasSubstr("130 layers of two kinds"));
}

TEST(FusedDecodePlanTest, NormsOfWholeProjectionsTakeOneTokenOfASequence) {
  BlockSpec block{.layers = std::vector<LayerSpec>(2)};
  block.qk_norm = QkNorm::kWholeProjection;
  const FusedDecodePlan plan = plan_fused_decode(block, kLlama8B);
  EXPECT_EQ(plan.problem, "");
  EXPECT_EQ(fused_instance(plan.block, false, 128), FusedInstance::kAnyBlock);
  EXPECT_FALSE(plan.takes_drafts);
  EXPECT_TRUE(plan_fused_decode(altered_block("qk_norm", 2), kLlama8B).takes_drafts);
  FusedStepSize step{
      .num_tokens = 2, .num_sequences = 2, .num_decodes = 2, .max_context_length = 9};
  EXPECT_TRUE(takes_step(plan, step));
  step.num_tokens = 3;
  EXPECT_FALSE(takes_step(plan, step));
}

TEST(FusedDecodePlanTest, NormsAfterHalvesNeedASinglePass) {
  EXPECT_THAT(plan_fused_decode(gemma(4, 4096), shape_of(4608, 36864, 32, 16, 128)).problem,
              testing::HasSubstr("hidden_size is 4608"));
}

TEST(FusedDecodePlanTest, SaysWhyItDeclines) {
  const auto problem = [](auto change) {
    FusedDecodeShape shape = kLlama8B;
    change(shape);
    const FusedDecodePlan plan = plan_fused_decode({}, shape);
    EXPECT_FALSE(plan.runs());
    return plan.problem;
  };
  using testing::HasSubstr;
  EXPECT_THAT(problem([](auto& shape) { shape.gpu.compute_capability = 80; }), HasSubstr("sm_90"));
  EXPECT_THAT(problem([](auto& shape) { shape.is_bfloat16 = false; }), HasSubstr("bfloat16"));
  EXPECT_THAT(problem([](auto& shape) { shape.head_dim = 80; }), HasSubstr("head_dim is 80"));
  BlockSpec biased;
  biased.biases.qkv = true;
  EXPECT_THAT(plan_fused_decode(biased, shape_of(3072, 8192, 32, 32, 96)).problem,
              HasSubstr("with head_dim 96"));
  EXPECT_THAT(problem([](auto& shape) { shape.intermediate_size = 14400; }), HasSubstr("14400"));
  EXPECT_THAT(problem([](auto& shape) { shape.hidden_size = 16384; }), HasSubstr("16384"));
  EXPECT_THAT(problem([](auto& shape) { shape.page_size = 8; }), HasSubstr("pages of 8"));
  EXPECT_THAT(problem([](auto& shape) {
                shape.num_heads = 288;
                shape.num_kv_heads = 32;
                shape.head_dim = 64;
              }),
              HasSubstr("make 96 groups"));
  EXPECT_THAT(problem([](auto& shape) { shape.gpu.shared_bytes = 100 * 1024; }),
              HasSubstr("rings"));
}

}  // namespace
}  // namespace tessera
