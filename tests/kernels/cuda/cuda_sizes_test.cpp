// In which sizes models are computed on a GPU.
#include "kernels/cuda/cuda_sizes.h"

#include <gtest/gtest.h>

#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

class CudaSizesTest : public testing::Test {
 protected:
  CudaSizesTest() {
    shape_.block.layers.resize(24);
    shape_.vocab_size = 150'000;
    shape_.page_size = 64;
    shape_.max_sequences = 1;
  }
  static BlockSizes sizes(int64_t hidden_size, int64_t intermediate_size, int64_t num_heads,
                          int64_t num_kv_heads, int64_t head_dim) {
    return {.hidden_size = hidden_size,
            .intermediate_size = intermediate_size,
            .num_heads = num_heads,
            .num_kv_heads = num_kv_heads,
            .head_dim = head_dim};
  }
  void expect_sizes(const BlockSizes& own, const BlockSizes& computed) {
    shape_.sizes = own;
    const BlockSizes result = cuda_sizes(shape_, gpu_, is_bfloat16_);
    EXPECT_EQ(result.hidden_size, computed.hidden_size);
    EXPECT_EQ(result.intermediate_size, computed.intermediate_size);
    EXPECT_EQ(result.num_heads, computed.num_heads);
    EXPECT_EQ(result.num_kv_heads, computed.num_kv_heads);
    EXPECT_EQ(result.head_dim, computed.head_dim);
  }

  ModelShape shape_;
  GpuTraits gpu_ = kH200;
  bool is_bfloat16_ = true;
};

// Qwen2.5 0.5B, Gemma 3 1B, SmolLM2 135M and 360M.
TEST_F(CudaSizesTest, SmallModelsAreFilledUpForAStepInOneKernel) {
  expect_sizes(sizes(896, 4864, 14, 2, 64), sizes(1024, 4864, 16, 2, 64));
  expect_sizes(sizes(576, 1536, 9, 3, 64), sizes(768, 1536, 12, 3, 64));
  expect_sizes(sizes(960, 2560, 15, 5, 64), sizes(1024, 2560, 20, 5, 64));
  expect_sizes(sizes(896, 4864, 18, 2, 64), sizes(1024, 4864, 20, 2, 64));
  shape_.block.norm_placement = NormPlacement::kPreAndPost;
  expect_sizes(sizes(1152, 6912, 4, 1, 256), sizes(1280, 6912, 4, 1, 256));
}

TEST_F(CudaSizesTest, SizesOfAStepInOneKernelStay) {
  expect_sizes(sizes(4096, 14336, 32, 8, 128), sizes(4096, 14336, 32, 8, 128));
}

TEST_F(CudaSizesTest, NothingIsFilledUpForStepsOfManySequences) {
  for (const int64_t many : {int64_t{0}, int64_t{9}, int64_t{64}}) {
    shape_.max_sequences = many;
    expect_sizes(sizes(896, 4864, 14, 2, 64), sizes(896, 4864, 14, 2, 64));
  }
}

TEST_F(CudaSizesTest, NothingIsFilledUpWhereNoStepIsOneKernel) {
  const BlockSizes own = sizes(896, 4864, 14, 2, 64);
  is_bfloat16_ = false;
  expect_sizes(own, own);
  is_bfloat16_ = true;
  gpu_.compute_capability = 80;
  expect_sizes(own, own);
  gpu_.compute_capability = 90;
  shape_.block.norm = NormKind::kLayerNorm;
  expect_sizes(own, own);
}

TEST_F(CudaSizesTest, WeightsDoNotBecomeFarMore) {
  expect_sizes(sizes(264, 512, 4, 2, 64), sizes(264, 512, 4, 2, 64));  // 512 would be twice as many
  expect_sizes(sizes(504, 512, 4, 2, 64), sizes(512, 512, 4, 2, 64));
}

TEST_F(CudaSizesTest, SizesWithoutKernelsBecomeTheNextOnesWithThem) {
  shape_.max_sequences = 64;
  expect_sizes(sizes(512, 37, 4, 2, 16), sizes(512, 40, 4, 2, 32));
  expect_sizes(sizes(33, 64, 4, 2, 112), sizes(40, 64, 4, 2, 128));
  expect_sizes(sizes(512, 64, 4, 2, 80), sizes(512, 64, 4, 2, 80));
  shape_.kv_dtype = KvDType::kFloat8E4M3;
  expect_sizes(sizes(512, 64, 4, 2, 80), sizes(512, 64, 4, 2, 96));
}

TEST_F(CudaSizesTest, LayerNormKeepsHiddenSize) {
  shape_.block.norm = NormKind::kLayerNorm;
  expect_sizes(sizes(33, 37, 4, 2, 64), sizes(33, 40, 4, 2, 64));
}

TEST_F(CudaSizesTest, RefusesHeadsThatAreTooLarge) {
  shape_.sizes = sizes(512, 64, 4, 2, 320);
  EXPECT_THROW(cuda_sizes(shape_, gpu_, is_bfloat16_), Error);
}

}  // namespace
}  // namespace tessera
