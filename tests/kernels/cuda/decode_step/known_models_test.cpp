// The plan of the fused decode kernel for models that people download.
#include <gtest/gtest.h>

#include <vector>

#include "tests/kernels/cuda/decode_step/decode_shapes.h"

namespace tessera {
namespace {

// A model, by what differs from Llama 3.1 8B.
struct KnownModel {
  const char* name;
  FusedDecodeShape shape;
  BlockSpec block;
  int max_tokens;
  FusedRings rings;             // in a step of a single token
  FusedRings rings_of_several;  // in a step of several
};

std::vector<KnownModel> known_models() {
  BlockSpec qwen2{.layers = std::vector<LayerSpec>(28)};
  qwen2.biases.qkv = true;
  BlockSpec qwen3{.layers = std::vector<LayerSpec>(36)};
  qwen3.qk_norm = QkNorm::kPerHead;
  BlockSpec smollm3{.layers = std::vector<LayerSpec>(36)};
  for (size_t i = 3; i < 36; i += 4) smollm3.layers[i].rope_table.reset();
  BlockSpec gemma2 = gemma(42, 4096);
  gemma2.attention_softcap = 50.0;
  gemma2.logit_softcap = 30.0;
  BlockSpec gemma3 = gemma(34, 1024);
  gemma3.qk_norm = QkNorm::kPerHead;
  const BlockSpec llama{.layers = std::vector<LayerSpec>(32)};
  BlockSpec olmo2 = llama;
  olmo2.norm_placement = NormPlacement::kPost;
  olmo2.qk_norm = QkNorm::kWholeProjection;
  // Where not all stages are equal, so many warps have a chunk of hidden_size more.
  return {{"Qwen2.5 7B", shape_of(3584, 18944, 28, 4, 128), qwen2, 8, {5, 5, 6}, {4, 4, 6}},
          {"Qwen3 8B", shape_of(4096, 12288, 32, 8, 128), qwen3, 8, {6, 6, 0}, {4, 4, 0}},
          {"Qwen3 0.6B", shape_of(1024, 3072, 16, 8, 128), qwen3, 8, {4, 8, 4}, {4, 7, 4}},
          {"SmolLM3 3B", shape_of(2048, 11008, 16, 4, 128), smollm3, 8, {6, 6, 0}, {5, 5, 0}},
          {"Phi-4-mini", shape_of(3072, 8192, 24, 8, 128), llama, 8, {4, 8, 4}, {3, 6, 4}},
          {"Phi-3.5-mini", shape_of(3072, 8192, 32, 32, 96), llama, 8, {4, 8, 4}, {3, 6, 4}},
          {"OLMo 2 7B", shape_of(4096, 11008, 32, 32, 128), olmo2, 8, {6, 6, 0}, {4, 4, 0}},
          {"Gemma 3 4B", shape_of(2560, 10240, 8, 4, 256), gemma3, 8, {4, 12, 2}, {3, 8, 2}},
          // The inputs of eight tokens leave three units for a ring.
          {"Gemma 2 9B", shape_of(3584, 14336, 16, 8, 256), gemma2, 8, {5, 6, 6}, {3, 4, 6}},
          {"Mistral Nemo", shape_of(5120, 14336, 32, 8, 128), llama, 8, {6, 6, 4}, {3, 4, 4}},
          // They leave two.
          {"Of wide rows", shape_of(7168, 16384, 56, 8, 128), llama, 1, {5, 6, 4}, {}}};
}

TEST(FusedDecodePlanTest, RunsTheModelsThatPeopleDownload) {
  for (const KnownModel& model : known_models()) {
    SCOPED_TRACE(model.name);
    const FusedDecodePlan plan = plan_fused_decode(model.block, model.shape);
    EXPECT_EQ(plan.problem, "");
    EXPECT_EQ(plan.max_tokens, model.max_tokens);
    for (int tokens = 1; tokens <= plan.max_tokens; tokens += 7) {
      const int64_t head_dim = model.shape.head_dim;
      const int64_t limit = model.shape.gpu.shared_bytes;
      const FusedRings rings = fused_shared_memory(plan, tokens, head_dim, limit).rings;
      EXPECT_GE(rings.stages, kLeastFusedStages);
      EXPECT_GE(rings.deep_stages, rings.stages);
      EXPECT_EQ(rings, tokens == 1 ? model.rings : model.rings_of_several);
      EXPECT_LE(shared_bytes(plan, tokens, head_dim), limit);
    }
    FusedDecodeShape fp8 = model.shape;
    fp8.pages = DType::kFloat8E4M3;
    const FusedDecodePlan plan_of_fp8 = plan_fused_decode(model.block, fp8);
    EXPECT_EQ(plan_of_fp8.problem, "");
    EXPECT_EQ(plan_of_fp8.max_tokens, model.max_tokens);
    for (int tokens = 1; tokens <= plan_of_fp8.max_tokens; tokens += 7) {
      EXPECT_LE(shared_bytes(plan_of_fp8, tokens, fp8.head_dim), fp8.gpu.shared_bytes);
    }
  }
}

}  // namespace
}  // namespace tessera
