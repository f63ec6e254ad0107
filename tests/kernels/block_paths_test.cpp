// Each way of computing blocks declines what it does not compute, by the field's name: no field is
// passed over in silence, also none that is added later.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <span>

#include "kernels/backend.h"
#include "kernels/backend_limits.h"
#include "kernels/cuda/decode_step/make_plan.h"
#include "kernels/cuda/linear/fused_block.h"
#include "kernels/layer_runner.h"
#include "kernels/tensor/buffer.h"
#include "tests/kernels/altered_block.h"
#include "tests/kernels/cuda/h200.h"

namespace tessera {
namespace {

struct Path {
  std::string_view name;
  std::function<std::string(const BlockSpec&)> problem;  // the field that it declines
  std::span<const std::string_view> fields;              // that it claims to compute
  bool computes_layers_only = false;                     // and passes over what is not of layers

  bool claims(std::string_view field) const {
    const auto has = [&](std::span<const std::string_view> names) {
      return std::ranges::find(names, field) != names.end();
    };
    return has(fields) || (computes_layers_only && has(kFieldsOutsideLayers));
  }
};

std::vector<Path> paths() {
  return {{"layers", layer_runner_problem, kFieldsOfLayerRunner, true},
          {"fused products", fused_products_block_problem, kFieldsOfFusedProducts, true},
          {"decode step", fused_decode_block_problem, kFieldsOfDecodeStep}};
}

TEST(BlockPathsTest, LlamaRuns) {
  for (const Path& path : paths()) EXPECT_EQ(path.problem(block_of(3)), "") << path.name;
}

TEST(BlockPathsTest, EveryFieldIsComputedOrDeclined) {
  for (const Path& path : paths()) {
    for_each_block_field([&](std::string_view field, auto...) {
      // How many layers there are is no question of how they compute; what they are comes below.
      if (field == "layers") return;
      EXPECT_EQ(path.problem(altered_block(field, 3)), path.claims(field) ? "" : field)
          << path.name;
    });
  }
}

TEST(BlockPathsTest, EveryFieldOfLayersIsComputedOrDeclined) {
  for (const Path& path : paths()) {
    for_each_layer_field([&](std::string_view field, auto member) {
      EXPECT_EQ(path.problem(altered_block(field, 3)),
                path.claims(field) ? "" : concat("layers[0].", field))
          << path.name;
      BlockSpec one_layer = block_of(3);
      alter(one_layer.layers[1].*member);
      EXPECT_EQ(path.problem(one_layer), path.claims(field) ? "" : concat("layers[1].", field))
          << path.name;
    });
  }
}

// Of a field that is computed, not every value has to be.
TEST(BlockPathsTest, LayerNormAfterAHalfIsDeclined) {
  BlockSpec block = block_of(3);
  block.norm = NormKind::kLayerNorm;
  for (const NormPlacement placement : {NormPlacement::kPost, NormPlacement::kPreAndPost}) {
    block.norm_placement = placement;
    for (const Path& path : paths()) EXPECT_EQ(path.problem(block), "norm") << path.name;
  }
}

TEST(BlockPathsTest, FusedProductsDeclineTheNormsOfOlmo2) {
  BlockSpec post = block_of(3);
  post.norm_placement = NormPlacement::kPost;
  EXPECT_EQ(layer_runner_problem(post), "");
  EXPECT_EQ(fused_products_block_problem(post), "norm_placement");
  EXPECT_EQ(fused_decode_block_problem(post), "");
  BlockSpec whole = block_of(3);
  whole.qk_norm = QkNorm::kWholeProjection;
  EXPECT_EQ(layer_runner_problem(whole), "");
  EXPECT_EQ(fused_decode_block_problem(whole), "");
}

TEST(BlockPathsTest, FastPathsDeclineTheLayerNormOfHeads) {
  BlockSpec block = block_of(3);
  block.qk_norm = QkNorm::kLayerNormPerHead;
  EXPECT_EQ(layer_runner_problem(block), "");
  EXPECT_EQ(fused_products_block_problem(block), "qk_norm");
  EXPECT_EQ(fused_decode_block_problem(block), "qk_norm");
}

// What a model is told when its block is declined names the field.
TEST(BlockPathsTest, TheFieldIsNamed) {
  const FusedDecodeShape shape{.hidden_size = 256,
                               .intermediate_size = 256,
                               .vocab_size = 100,
                               .num_heads = 4,
                               .num_kv_heads = 1,
                               .head_dim = 64,
                               .page_size = 64,
                               .is_bfloat16 = true,
                               .gpu = kH200};
  EXPECT_EQ(plan_fused_decode(block_of(2), shape).problem, "");
  EXPECT_EQ(plan_fused_decode(altered_block("norm", 2), shape).problem,
            "it does not compute this model's norm");

  const auto backend = make_cpu_backend(1);
  const BlockSizes sizes{.hidden_size = 16,
                         .intermediate_size = 16,
                         .num_heads = 2,
                         .num_kv_heads = 1,
                         .head_dim = 8,
                         .rms_norm_eps = 1e-5f};
  const BackendLimits limits{.max_tokens = 4,
                             .max_sequences = 1,
                             .max_context_length = 4,
                             .num_heads = 2,
                             .num_kv_heads = 1,
                             .head_dim = 8};
  Arena arena;
  EXPECT_NO_THROW(LayerRunner(arena, block_of(2), sizes, limits, backend->fused_operations({})));
  try {
    LayerRunner(arena, altered_block("experts", 2), sizes, limits, backend->fused_operations({}));
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "this model's layers cannot be computed: nothing here knows their experts");
  }
}

}  // namespace
}  // namespace tessera
