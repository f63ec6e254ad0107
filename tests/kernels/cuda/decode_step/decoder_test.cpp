// A whole decode step in one kernel, against double precision and against the operations that it
// replaces.
#include <functional>

#include "tests/kernels/altered_block.h"
#include "tests/kernels/cuda/decode_step/decoder_check.h"
#include "tests/kernels/num_repeats.h"

namespace tessera {
namespace {

TEST(FusedDecoderOnCpuTest, ThereIsNone) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  const DecodeStepModel model(*backend, {}, {65}, {});
  std::string problem;
  EXPECT_EQ(backend->make_fused_decoder(model.model(), problem), nullptr);
  EXPECT_EQ(problem, "there is none on cpu");
}

// OLMo 2's.
BlockSpec olmo2_block(size_t num_layers) {
  BlockSpec block{.layers = std::vector<LayerSpec>(num_layers)};
  block.norm_placement = NormPlacement::kPost;
  block.qk_norm = QkNorm::kWholeProjection;
  return block;
}

TEST_P(FusedDecoderTest, OneSequence) {
  for (const int64_t context : {1, 2, 31, 32, 33, 63, 64, 65, 257, 512, 769}) check({}, {context});
  for (const int64_t context : {256, 513}) check({.hidden_size = 1280, .head_dim = 128}, {context});
}

TEST_P(FusedDecoderTest, LongContexts) {
  check({.block = windowed(300)}, {700});
  check({.num_layers = 2}, {5000});
  check({.hidden_size = 1280, .intermediate_size = 512, .head_dim = 128, .num_layers = 2}, {9001});
}

TEST_P(FusedDecoderTest, SeveralSequences) {
  check({}, {1, 1});
  check({}, {40, 300, 1});
  check({}, {64, 65, 66, 127, 128});
  check({}, {300, 1, 2, 700, 31, 32, 33, 64});
  // More blocks than some products have items.
  check({.hidden_size = 1280, .num_layers = 2}, {300, 1, 2, 700, 31, 32, 33, 64});
}

// Calls use(size) for blocks over float8_e4m3 pages with one field altered.
void for_each_field_over_fp8_pages(const std::function<void(const DecodeStepSize&)>& use) {
  for (const std::string_view field : kFieldsOfDecodeStep) {
    SCOPED_TRACE(field);
    for (const int64_t head_dim : {64, 128}) {
      use({.head_dim = head_dim, .block = altered_block(field, 3), .fp8_pages = true});
    }
  }
}

// Sequences with several tokens, each of which sees those before it in the step. Contexts end at
// the edges of units (8, 16, 32 or 64 tokens), tiles (64) and pages.
TEST_P(FusedDecoderTest, SeveralTokensOfASequence) {
  for (const int64_t head_dim : {64, 128, 256}) {
    const DecodeStepSize size{.head_dim = head_dim};
    for (const int64_t context : {8, 9, 15, 20, 33, 39, 64, 65, 66, 71, 72, 130, 513}) {
      check(size, {context}, {8});
    }
    check(size, {2}, {2});
    check(size, {300, 70, 1}, {2, 5, 1});
    check(size, {66, 1, 67, 4}, {3, 1, 1, 3});
    check({.head_dim = head_dim, .block = windowed(5)}, {300, 65}, {4, 4});
    check({.head_dim = head_dim, .page_size = 32}, {33, 66, 256}, {3, 3, 2});
  }
  check({.hidden_size = 1280, .head_dim = 128, .num_layers = 2}, {2049}, {7});
  check({.num_heads = 32, .num_kv_heads = 8, .head_dim = 128, .num_layers = 2}, {700}, {8});
  for (const int64_t head_dim : {64, 128, 256}) {
    for (const int64_t context : {8, 17, 32, 33, 39, 64, 66, 70, 257}) {
      check({.head_dim = head_dim, .fp8_pages = true}, {context, 65}, {4, 4});
    }
  }
  for (const std::string_view field : kFieldsOfDecodeStep) {
    SCOPED_TRACE(field);
    for (const int64_t head_dim : {64, 128}) {
      check({.head_dim = head_dim, .block = altered_block(field, 3)}, {300, 1, 66}, {4, 1, 3});
    }
  }
  for (const bool fp8_pages : {false, true}) {
    check({.head_dim = 256, .block = altered_block("qk_norm", 3), .fp8_pages = fp8_pages},
          {66, 300}, {6, 2});
  }
  for_each_field_over_fp8_pages([&](const DecodeStepSize& size) {
    check(size, {300, 1, 66}, {4, 1, 3});
  });
}

TEST_P(FusedDecoderTest, ModelShapes) {
  check({.hidden_size = 768, .intermediate_size = 2304, .vocab_size = 8, .num_layers = 1}, {100});
  check({.hidden_size = 1280, .intermediate_size = 1536, .vocab_size = 5000, .num_layers = 4},
        {70});
  check({.hidden_size = 2304, .intermediate_size = 5120, .num_layers = 2}, {70, 90});
  // The inputs of several tokens leave three units for a ring.
  check({.hidden_size = 5120, .intermediate_size = 512, .num_layers = 2}, {70, 90, 1, 300});
  // Of the long products, blocks claim items; at 32 blocks these are long.
  check({.intermediate_size = 4096, .vocab_size = 5003}, {100});
  check({.intermediate_size = 2304, .vocab_size = 5003}, {100, 3, 70});
  check({.page_size = 128}, {500, 129});
  check({.head_dim = 128, .page_size = 16}, {17, 16, 100});
}

TEST_P(FusedDecoderTest, EveryFieldOverPagesOfFp8) {
  for_each_field_over_fp8_pages([&](const DecodeStepSize& size) {
    for (const int64_t context : {1, 32, 33, 300}) check(size, {context});
    check(size, {300, 1, 64, 65});
  });
}

TEST_P(FusedDecoderTest, SlidingWindow) {
  check({.block = windowed(40)}, {300});
  check({.block = windowed(64)}, {300, 1, 64, 65});
  check({.head_dim = 128, .block = windowed(1)}, {50});
}

TEST_P(FusedDecoderTest, EveryFieldOfABlockThatItComputes) {
  for (const std::string_view field : kFieldsOfDecodeStep) {
    SCOPED_TRACE(field);
    for (const int64_t head_dim : {64, 128}) {
      const DecodeStepSize size{.head_dim = head_dim, .block = altered_block(field, 3)};
      check(size, {300});
      check(size, {300, 1, 64, 65});
    }
  }
}

// Layers that see all tokens and do not rotate among others.
BlockSpec mixed_layers(size_t num_layers, const LayerSpec& usual, const LayerSpec& every_third) {
  BlockSpec block{.layers = std::vector<LayerSpec>(num_layers, usual)};
  for (size_t i = 1; i < num_layers; i += 3) block.layers[i] = every_third;
  return block;
}

TEST_P(FusedDecoderTest, TwoKindsOfLayers) {
  const std::vector<int64_t> contexts = {300, 1, 2, 700, 31, 32, 33, 64};
  const LayerSpec everything{.sliding_window = 0, .rope_table = {}};
  // The last differs in its RoPE table alone, so that both kinds have the same share of attention.
  for (const LayerSpec& usual : {LayerSpec{.sliding_window = 40, .rope_table = 0},
                                 LayerSpec{.sliding_window = 130, .rope_table = 1},
                                 LayerSpec{.sliding_window = 0, .rope_table = 1}}) {
    for (const int64_t head_dim : {64, 128, 256}) {
      for (const bool fp8_pages : {false, true}) {
        const DecodeStepSize size{.head_dim = head_dim,
                                  .num_layers = 5,
                                  .block = mixed_layers(5, usual, everything),
                                  .fp8_pages = fp8_pages};
        check(size, {300});
        check(size, contexts);
      }
    }
  }
}

TEST_P(FusedDecoderTest, BlocksOfFamilies) {
  const std::vector<int64_t> contexts = {300, 1, 2, 700, 31, 32, 33, 64};
  const auto check_all = [&](DecodeStepSize size) {
    for (const bool fp8_pages : {false, true}) {
      size.fp8_pages = fp8_pages;
      check(size, {513});
      check(size, contexts);
    }
  };
  BlockSpec qwen2 = windowed(0);
  qwen2.biases.qkv = true;
  check_all({.num_heads = 14, .head_dim = 128, .block = qwen2});
  BlockSpec granite = windowed(0);
  granite.attention_scale = 0.01;
  granite.embedding_multiplier = 12.0;
  granite.residual_multiplier = 0.22;
  check_all({.block = granite});
  BlockSpec gemma2 = mixed_layers(4, {.sliding_window = 100}, {});
  gemma2.norm_placement = NormPlacement::kPreAndPost;
  gemma2.activation = Activation::kGeluTanh;
  gemma2.attention_softcap = 5.0;
  gemma2.logit_softcap = 3.0;
  gemma2.embedding_multiplier = 16.0;
  check_all({.num_heads = 4, .head_dim = 256, .num_layers = 4, .block = gemma2});
  BlockSpec gemma3 = mixed_layers(4, {.sliding_window = 100, .rope_table = 1}, {});
  gemma3.norm_placement = NormPlacement::kPreAndPost;
  gemma3.activation = Activation::kGeluTanh;
  gemma3.qk_norm = QkNorm::kPerHead;
  gemma3.embedding_multiplier = 16.0;
  check_all({.num_heads = 4, .head_dim = 256, .num_layers = 4, .block = gemma3});
  check_all({.head_dim = 128, .block = olmo2_block(3)});
  // Five query heads for a KV head; 320 items of queries, of which a norm of all adds up 256 at a
  // time.
  check_all({.num_heads = 40, .num_kv_heads = 8, .head_dim = 128, .block = olmo2_block(3)});
  BlockSpec olmo3 = olmo2_block(4);
  olmo3.layers = mixed_layers(4, {.sliding_window = 100, .rope_table = 1}, {}).layers;
  check_all({.num_kv_heads = 8, .head_dim = 128, .num_layers = 4, .block = olmo3});
  BlockSpec exaone4 = olmo3;
  exaone4.qk_norm = QkNorm::kPerHead;
  check_all({.num_layers = 4, .block = exaone4});
  // Most fields, in blocks that have several items of some heads.
  BlockSpec all = gemma3;
  all.biases.qkv = true;
  all.residual_multiplier = 0.5;
  all.logit_softcap = 3.0;
  check_all({.hidden_size = 1280, .num_heads = 14, .head_dim = 128, .num_layers = 4, .block = all});
}

// Steps of different sizes in turn leave nothing behind for each other. Without the fence in
// UnitRing::release() about one step of eight sequences in a hundred differed.
TEST_P(FusedDecoderTest, RepeatedStepsAreTheSameBitByBit) {
  for (const DecodeStepSize& size :
       {DecodeStepSize{.intermediate_size = 4096, .vocab_size = 5003},
        DecodeStepSize{.hidden_size = 1280, .head_dim = 128, .block = altered_block("qk_norm", 3)},
        // 32 blocks claim the last 32 items of qkv, half of them keys, and seldom one each.
        DecodeStepSize{.head_dim = 128, .block = altered_block("qk_norm", 3)},
        DecodeStepSize{.head_dim = 256, .block = altered_block("norm_placement", 3)},
        DecodeStepSize{.hidden_size = 1280, .block = altered_block("norm_placement", 3)},
        DecodeStepSize{.hidden_size = 1280}, DecodeStepSize{.hidden_size = 1280, .head_dim = 128},
        DecodeStepSize{.hidden_size = 1280, .head_dim = 128, .fp8_pages = true},
        DecodeStepSize{.head_dim = 128, .block = altered_block("qk_norm", 3), .fp8_pages = true},
        DecodeStepSize{.hidden_size = 1280, .fp8_pages = true},
        DecodeStepSize{.head_dim = 128, .block = olmo2_block(3)}, DecodeStepSize{.head_dim = 96},
        DecodeStepSize{.hidden_size = 1280, .head_dim = 96, .fp8_pages = true},
        DecodeStepSize{
            .head_dim = 256, .block = altered_block("norm_placement", 3), .fp8_pages = true},
        DecodeStepSize{.hidden_size = 2304, .intermediate_size = 1536}}) {
    DecodeStepModel model(backend(), size, {700, 3, 129, 64, 1, 2049, 300, 65});
    const std::unique_ptr<FusedDecoder> decoder = decoder_of(model);
    if (decoder == nullptr) return;
    std::vector<std::vector<uint8_t>> first(9);
    for (int64_t repeat = 0; repeat < num_repeats(20); ++repeat) {
      const Deadline deadline("fused decode");
      for (const int64_t count : {1, 8, 1, 1, 3, 8}) {
        const std::vector<uint8_t> bytes = bytes_of(backend(), model.fused(*decoder, count));
        std::vector<uint8_t>& expected = first[index_of(count)];
        if (expected.empty()) {
          expected = bytes;
          for (const double logit : to_host(backend(), model.fused(*decoder, count))) {
            ASSERT_TRUE(std::isfinite(logit));
          }
        }
        ASSERT_TRUE(bytes == expected) << count << " sequences, repeat " << repeat;
      }
    }
  }
}

TEST_P(FusedDecoderTest, RepeatedStepsOfSeveralTokensAreTheSameBitByBit) {
  for (const DecodeStepSize& size :
       {DecodeStepSize{}, DecodeStepSize{.head_dim = 128}, DecodeStepSize{.fp8_pages = true},
        DecodeStepSize{.head_dim = 128, .block = altered_block("qk_norm", 3)},
        DecodeStepSize{.hidden_size = 1280, .head_dim = 128, .fp8_pages = true},
        DecodeStepSize{.head_dim = 128, .block = altered_block("qk_norm", 3), .fp8_pages = true}}) {
    DecodeStepModel model(backend(), size, {2049, 67}, {4, 4});
    const std::unique_ptr<FusedDecoder> decoder = decoder_of(model);
    if (decoder == nullptr) return;
    std::vector<std::vector<uint8_t>> first(3);
    for (int64_t repeat = 0; repeat < num_repeats(20); ++repeat) {
      const Deadline deadline("fused decode");
      for (const int64_t count : {2, 1, 2}) {
        const std::vector<uint8_t> bytes = bytes_of(backend(), model.fused(*decoder, count));
        std::vector<uint8_t>& expected = first[index_of(count)];
        if (expected.empty()) expected = bytes;
        ASSERT_TRUE(bytes == expected) << count << " sequences, repeat " << repeat;
      }
    }
  }
}

FOR_EACH_BACKEND(FusedDecoderTest);

}  // namespace
}  // namespace tessera
