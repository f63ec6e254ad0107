// A whole decode step in one kernel, where KV heads have many query heads.
#include "tests/kernels/altered_block.h"
#include "tests/kernels/cuda/decode_step/decoder_check.h"

namespace tessera {
namespace {

// KV heads of more query heads than one item of attention has: two groups of 8, of 5, three of
// 3, 8.
class FusedDecoderGroupsTest : public FusedDecoderTest {
 protected:
  void check_groups(bool fp8_pages) {
    BlockSpec glm4{.layers = std::vector<LayerSpec>(3)};
    glm4.biases.qkv = true;
    glm4.norm_placement = NormPlacement::kPreAndPost;
    const auto check_step = [&](DecodeStepSize size, const std::vector<int64_t>& contexts,
                                const std::vector<int64_t>& query_lengths = {}) {
      size.fp8_pages = fp8_pages;
      check(size, contexts, query_lengths);
    };
    for (const auto& [num_heads, num_kv_heads] :
         {std::pair{32, 2}, std::pair{20, 2}, std::pair{36, 4}, std::pair{24, 1}}) {
      const DecodeStepSize size{.num_heads = num_heads, .num_kv_heads = num_kv_heads};
      for (const int64_t context : {1, 17, 63, 64, 65, 769}) check_step(size, {context});
      check_step(size, {300, 1, 2, 700, 31, 32, 33, 64});
      check_step(size, {300, 70, 1}, {2, 5, 1});
    }
    const DecodeStepSize of_glm4{
        .num_heads = 32, .num_kv_heads = 2, .head_dim = 128, .block = glm4};
    for (const int64_t context : {1, 64, 300, 5000}) check_step(of_glm4, {context});
    check_step(of_glm4, {300, 1, 2, 700, 31, 32, 33, 64});
    const DecodeStepSize normed{
        .num_heads = 20, .num_kv_heads = 2, .block = altered_block("qk_norm", 3)};
    check_step(normed, {70});
    check_step(normed, {300, 66}, {4, 4});
    check_step({.num_heads = 20, .num_kv_heads = 2, .head_dim = 128, .block = windowed(40)},
               {300, 1, 64, 65});
    check_step({.num_heads = 9, .num_kv_heads = 1, .head_dim = 256}, {300, 65});
  }
};

TEST_P(FusedDecoderGroupsTest, OverPagesOfBFloat16) { check_groups(false); }
TEST_P(FusedDecoderGroupsTest, OverPagesOfFp8) { check_groups(true); }

FOR_EACH_BACKEND(FusedDecoderGroupsTest);

}  // namespace
}  // namespace tessera
