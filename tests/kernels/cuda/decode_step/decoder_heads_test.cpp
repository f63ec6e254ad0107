// A whole decode step in one kernel, over every size of heads and both types of pages.
#include "tests/kernels/cuda/decode_step/decoder_check.h"

namespace tessera {
namespace {

class FusedDecoderHeadsTest : public FusedDecoderTest {};

TEST_P(FusedDecoderHeadsTest, HeadShapes) {
  for (const int64_t head_dim : {64, 128}) {
    for (const auto& [num_heads, num_kv_heads] :
         {std::pair{4, 4}, std::pair{8, 1}, std::pair{16, 2}, std::pair{32, 8}}) {
      const DecodeStepSize size{.num_heads = num_heads,
                                .num_kv_heads = num_kv_heads,
                                .head_dim = head_dim,
                                .num_layers = 2};
      check(size, {150});
      check(size, {65, 16, 17, 90});
    }
  }
}

// Blocks have many pieces of attention, some as many as there is room for.
TEST_P(FusedDecoderHeadsTest, ManyKvHeads) {
  const DecodeStepSize size{
      .hidden_size = 1280, .num_heads = 32, .num_kv_heads = 32, .num_layers = 2};
  check(size, {1, 1, 1, 1, 1, 1, 1, 1});
  check(size, {300, 1, 2, 700, 31, 32, 33, 64});
  check(size, {1, 1, 3968, 3968, 3968, 3968, 3968, 3968});
  check(size, {3968, 3968, 3968, 3968, 3968, 1, 1, 1});
  check(size, {70, 300}, {3, 5});
  check({.num_heads = 64, .num_kv_heads = 64, .num_layers = 2}, {1, 2, 65, 130, 1});
}

TEST_P(FusedDecoderHeadsTest, WideHeads) {
  for (const int64_t context : {1, 2, 7, 8, 9, 63, 64, 65, 257, 769}) {
    check({.head_dim = 256}, {context});
  }
  check({.head_dim = 256, .block = windowed(20)}, {300, 19, 20, 21});
  // Blocks have more than one pass of what they add to the residual stream.
  check({.hidden_size = 5120, .intermediate_size = 512, .head_dim = 256, .num_layers = 2}, {70});
  check({.hidden_size = 1280, .num_heads = 4, .num_kv_heads = 4, .head_dim = 256, .page_size = 16},
        {17, 16, 100, 1, 8, 9, 250, 5});
}

// Heads whose units do not fill their stages.
TEST_P(FusedDecoderHeadsTest, HeadsOf96) {
  for (const bool fp8_pages : {false, true}) {
    const auto check_96 = [&](DecodeStepSize size, const std::vector<int64_t>& contexts,
                              const std::vector<int64_t>& query_lengths = {}) {
      size.head_dim = 96;
      size.fp8_pages = fp8_pages;
      check(size, contexts, query_lengths);
    };
    for (const int64_t context : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257, 512, 769}) {
      check_96({}, {context});
    }
    for (const int64_t context : {8, 9, 15, 20, 33, 39, 64, 65, 66, 71, 72, 130, 513}) {
      check_96({}, {context}, {8});
    }
    check_96({}, {2}, {2});
    check_96({}, {300, 70, 1}, {2, 5, 1});
    check_96({}, {66, 1, 67, 4}, {3, 1, 1, 3});
    check_96({.block = windowed(5)}, {300, 65}, {4, 4});
    check_96({.hidden_size = 1280, .intermediate_size = 512, .num_layers = 2}, {9001});
    check_96({.hidden_size = 1280, .num_layers = 2}, {300, 1, 2, 700, 31, 32, 33, 64});
    check_96({.page_size = 128}, {500, 129});
    check_96({.block = windowed(40)}, {300, 1, 64, 65});
    for (const auto& [num_heads, num_kv_heads] :
         {std::pair{8, 8}, std::pair{8, 1}, std::pair{16, 2}}) {
      const DecodeStepSize size{.num_heads = num_heads, .num_kv_heads = num_kv_heads};
      check_96(size, {150});
      check_96(size, {65, 16, 17, 90});
    }
    check_96({.num_heads = 32, .num_kv_heads = 32}, {70});
    check_96({.num_heads = 32, .num_kv_heads = 32}, {70, 300, 1, 64, 65, 129, 2, 200});
  }
  for (const int64_t page_size : {16, 32}) {
    check({.head_dim = 96, .page_size = page_size}, {17, 16, 100});
    check({.head_dim = 96, .page_size = page_size}, {33, 66, 256}, {3, 3, 2});
  }
}

TEST_P(FusedDecoderHeadsTest, PagesOfFp8) {
  for (const int64_t head_dim : {64, 128, 256}) {
    const auto check_fp8 = [&](DecodeStepSize size, const std::vector<int64_t>& contexts) {
      size.head_dim = head_dim;
      size.fp8_pages = true;
      check(size, contexts);
    };
    // Few keys and values are few numbers, and which of them the roundings before turn into a
    // neighbour in e4m3 is chance: with four heads of 256 that evens out better than with two.
    const int64_t num_kv_heads = head_dim == 256 ? 4 : 2;
    for (const int64_t context : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 257, 512, 769}) {
      check_fp8({.num_kv_heads = num_kv_heads}, {context});
    }
    check_fp8({.hidden_size = 1280, .intermediate_size = 512, .num_layers = 2}, {9001});
    check_fp8({.hidden_size = 1280, .num_layers = 2}, {300, 1, 2, 700, 31, 32, 33, 64});
    check_fp8({.page_size = 128}, {500, 129});
    check_fp8({.block = windowed(300)}, {700, 20});
    for (const auto& [num_heads, num_kv_heads] :
         {std::pair{4, 4}, std::pair{8, 1}, std::pair{16, 2}, std::pair{32, 8}}) {
      const DecodeStepSize size{.num_heads = num_heads, .num_kv_heads = num_kv_heads};
      check_fp8(size, {150});
      check_fp8(size, {65, 16, 17, 90});
    }
  }
}

FOR_EACH_BACKEND(FusedDecoderHeadsTest);

}  // namespace
}  // namespace tessera
