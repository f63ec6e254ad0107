// The skinny kernel with every plan, also those that plan_linear() would not choose for a shape.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "tests/kernels/cuda/stream_test.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

class LinearSkinnyTest : public HopperStreamTest {
 protected:
  void check(int64_t num_tokens, int64_t out_features, int64_t in_features,
             const SkinnyPlan& plan) const {
    SCOPED_TRACE(testing::Message()
                 << num_tokens << " tokens, " << in_features << " -> " << out_features
                 << ", tiles of " << plan.tile_rows << " rows shared by " << plan.split << ", "
                 << plan.tiles_at_once << " at once");
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight = rounded(random.normal(out_features * in_features, 0.05), activation());
    const auto residual = rounded(random.normal(num_tokens * out_features), DType::kFloat32);
    const Shape shape{num_tokens, out_features};
    const DeviceTensor device_x = activations(x, {num_tokens, in_features});
    const DeviceTensor device_weight = activations(weight, {out_features, in_features});
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    const DeviceTensor sum = floats(residual, shape);
    device().synchronize();
    for (const Tensor& target : {out.view, sum.view}) {
      launch_linear_skinny_sm90({.out = target,
                                 .x = device_x,
                                 .weight = device_weight,
                                 .accumulate = target.data == sum.view.data},
                                plan, gpu().num_multiprocessors, stream());
    }
    finish();
    expect_close(host(out), reference_linear(x, weight, in_features), shape,
                 {.out = activation(), .length = in_features});
    expect_close(host(sum), reference_linear(x, weight, in_features, residual), shape,
                 {.length = in_features + 1});
  }

  void check_gated(int64_t num_tokens, int64_t out_features, int64_t in_features,
                   const SkinnyPlan& plan) const {
    for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
      check_gated(num_tokens, out_features, in_features, plan, activation);
    }
  }
  void check_gated(int64_t num_tokens, int64_t out_features, int64_t in_features,
                   const SkinnyPlan& plan, Activation of_gate) const {
    SCOPED_TRACE(testing::Message()
                 << num_tokens << " tokens, " << in_features << " -> " << out_features
                 << ", gated by " << (of_gate == Activation::kSilu ? "SiLU" : "GELU")
                 << ", tiles of " << plan.tile_rows << ", " << plan.tiles_at_once << " at once");
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight = rounded(random.normal(2 * out_features * in_features, 0.05), activation());
    const Shape shape{num_tokens, out_features};
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    const DeviceTensor device_x = activations(x, {num_tokens, in_features});
    const DeviceTensor device_weight = activations(weight, {2 * out_features, in_features});
    device().synchronize();
    launch_linear_skinny_sm90({.out = out,
                               .x = device_x,
                               .weight = device_weight,
                               .is_gated = true,
                               .activation = of_gate},
                              plan, gpu().num_multiprocessors, stream());
    finish();
    expect_close(host(out), reference_gated_linear(x, weight, in_features, of_gate), shape,
                 {.out = activation(),
                  .length = in_features,
                  .relative = 16.0 * unit_roundoff(DType::kFloat32)});
  }

  // The bytes of all that this product may make, one after the other: activations of inputs that
  // lack the norm's scale, and where it is not gated, what is added to a residual, with the norm
  // where rows fill the tiles.
  std::vector<uint8_t> bits(const Tensor& x, const Tensor& x_squares, const Tensor& weight,
                            const Tensor& norm_weight, bool is_gated,
                            const SkinnyPlan& plan) const {
    const int64_t out_features = is_gated ? weight.dim(0) / 2 : weight.dim(0);
    const int64_t size = x.dim(0) * out_features;
    const int64_t rounded_size = (size + 63) / 64 * 64;
    const int64_t num_floats = is_gated ? rounded_size : 4 * rounded_size;
    const Buffer memory = device().allocate(static_cast<size_t>(num_floats) * 4, "results");
    const Tensor all{memory.data(), DType::kFloat32, DeviceType::kCuda, {num_floats}};
    const auto place = [&](int64_t index, DType dtype, int64_t row_elements) {
      Tensor tensor = all.slice(index * rounded_size, num_floats);
      tensor.dtype = dtype;
      tensor.shape = {x.dim(0), row_elements};
      return tensor;
    };
    // 0.19 of every type: a residual, and what shows where nothing is written.
    CUDA_CHECK(cudaMemsetAsync(all.data, 0x3e, all.size_bytes(), stream()));
    launch_linear_skinny_sm90({.out = place(0, activation(), out_features),
                               .x = x,
                               .weight = weight,
                               .is_gated = is_gated,
                               .x_squares = x_squares,
                               .epsilon = 1e-5f},
                              plan, gpu().num_multiprocessors, stream());
    if (!is_gated) {
      SkinnyProduct product{.out = place(1, DType::kFloat32, out_features),
                            .x = x,
                            .weight = weight,
                            .accumulate = true};
      if (out_features % plan.tile_rows == 0) {
        product.norm = {.values = place(2, activation(), out_features),
                        .squares = place(3, DType::kFloat32, out_features / kSquaresFeatures),
                        .weight = norm_weight};
      }
      launch_linear_skinny_sm90(product, plan, gpu().num_multiprocessors, stream());
    }
    finish();
    return bytes_of(backend(), all);
  }

  // Values that repeat, but at no distance that is a multiple of a row.
  Buffer many_weights(int64_t num_elements) const {
    constexpr int64_t kPeriod = 100'003;  // prime
    Buffer memory =
        device().allocate(static_cast<size_t>(num_elements) * size_of(activation()), "weights");
    const Tensor all{memory.data(), activation(), DeviceType::kCuda, {num_elements}};
    const DeviceTensor some = activations(RandomValues(5).normal(kPeriod, 0.05), {kPeriod});
    device().synchronize();
    for (int64_t begin = 0; begin < num_elements; begin += kPeriod) {
      const Tensor place = all.slice(begin, std::min(begin + kPeriod, num_elements));
      CUDA_CHECK(cudaMemcpyAsync(place.data, some.view.data, place.size_bytes(),
                                 cudaMemcpyDeviceToDevice, stream()));
    }
    finish();
    return memory;
  }

  // Compares tiles side by side with one after the other: of `half_tiles` / 2 tiles for a
  // multiprocessor and `more` rows.
  void check_side_by_side(const SkinnyPlan& plan, bool is_gated, int64_t half_tiles, int64_t more,
                          int64_t in_features, const Tensor& weights) const {
    const int64_t tile_features = is_gated ? plan.tile_rows / 2 : plan.tile_rows;
    const int64_t out_features =
        int64_t{gpu().num_multiprocessors} * half_tiles / 2 * tile_features + more;
    const int64_t rows = is_gated ? 2 * out_features : out_features;
    const Tensor weight = weights.slice(0, rows * in_features).reshape({rows, in_features});
    RandomValues random(9);
    const DeviceTensor x = activations(random.normal(64 * in_features), {64, in_features});
    std::vector<double> parts = random.normal(int64_t{64} * 8);
    for (double& part : parts) part = 32.0 * part * part;
    const DeviceTensor x_squares = floats(parts, {64, 8});
    const DeviceTensor norm_weight = floats(random.normal(out_features), {out_features});
    device().synchronize();
    SkinnyPlan alone = plan;
    alone.tiles_at_once = 1;
    const std::vector<int64_t> token_counts = in_features == 520
                                                  ? std::vector<int64_t>{17, 32, 33, 63, 64}
                                                  : std::vector<int64_t>{33, 64};
    for (const int64_t num_tokens : token_counts) {
      SCOPED_TRACE(testing::Message()
                   << num_tokens << " tokens, " << in_features << " -> " << out_features
                   << ", tiles of " << plan.tile_rows << (is_gated ? ", gated" : ""));
      const auto run = [&](const SkinnyPlan& of_run) {
        return bits(x.view.slice(0, num_tokens), x_squares.view.slice(0, num_tokens), weight,
                    norm_weight, is_gated, of_run);
      };
      const std::vector<uint8_t> expected = run(alone);
      ASSERT_TRUE(run(plan) == expected);
      ASSERT_TRUE(run(plan) == expected) << "again";
    }
  }

  // Unless there are fewer steps than blocks that share a tile.
  void check_if_divided(int64_t num_tokens, int64_t out_features, int64_t in_features,
                        const SkinnyPlan& plan) {
    if (in_features > (plan.split - 1) * kSkinnyStepFeatures) {
      check(num_tokens, out_features, in_features, plan);
    }
  }

  // So many that some blocks have two tiles and the last one is not whole.
  int64_t several_tiles(int64_t tile_features) const {
    return int64_t{gpu().num_multiprocessors} * tile_features * 3 / 2 + 4;
  }
};

// Plans of several tiles at once: below, and compared with these.
TEST_P(LinearSkinnyTest, EveryPlanMatchesReference) {
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    if (plan.tiles_at_once > 1) continue;
    for (const int64_t num_tokens : {1, 9, 17, 64}) {
      for (const int64_t out_features : {1, 40, 129, 1000, 2056}) {
        for (const int64_t in_features : {264, 320}) {
          check_if_divided(num_tokens, out_features, in_features, plan);
        }
      }
      for (const int64_t in_features : {200, 520, 1000, 2112, 4104}) {
        check_if_divided(num_tokens, 232, in_features, plan);
      }
      if (plan.split > 1) continue;
      for (const int64_t in_features : {8, 64, 72}) check(num_tokens, 264, in_features, plan);
    }
  }
}

// Every kernel that is built, with more steps than its rings have places for, or with few steps
// and, if a block may have them, several tiles. The latter are what racecheck can follow
// (tests/sanitize_gpu.sh).
TEST_P(LinearSkinnyTest, OneProductOfEveryPlan) {
  for (const SkinnyPlan& plan : kSkinnyPlans) check(33, 232, 2112, plan);
}

TEST_P(LinearSkinnyTest, OneProductOfSeveralTilesOfEveryPlan) {
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    if (plan.split == 1) {
      check(33, several_tiles(plan.tile_rows), 136, plan);
    } else {
      check(33, 136, plan.split * 136, plan);
    }
  }
}

TEST_P(LinearSkinnyTest, OneProductOfEveryGatedPlan) {
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) {
    check_gated(33, several_tiles(plan.tile_rows / 2), 136, plan);
  }
}

// More tiles than multiprocessors, with and without whole pairs and quads of rows.
TEST_P(LinearSkinnyTest, BlocksTakeSeveralTiles) {
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    if (plan.split > 1) continue;
    for (const int64_t more : {0, 4, 1}) {
      for (const int64_t in_features : {136, 192}) {
        check(33, int64_t{gpu().num_multiprocessors} * plan.tile_rows * 3 / 2 + more, in_features,
              plan);
      }
    }
  }
}

TEST_P(LinearSkinnyTest, EveryGatedPlanMatchesReference) {
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) {
    if (plan.tiles_at_once > 1) continue;
    for (const int64_t num_tokens : {1, 9, 17, 64}) {
      for (const int64_t out_features : {1, 40, 129, 1000, 2056}) {
        for (const int64_t in_features : {264, 320}) {
          check_gated(num_tokens, out_features, in_features, plan);
        }
      }
      for (const int64_t in_features : {200, 1000, 2112, 4104}) {
        check_gated(num_tokens, 232, in_features, plan);
      }
      for (const int64_t in_features : {8, 64, 72}) {
        check_gated(num_tokens, 264, in_features, plan);
      }
    }
  }
}

TEST_P(LinearSkinnyTest, BlocksTakeSeveralGatedTiles) {
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) {
    for (const int64_t more : {0, 4, 1}) {
      for (const int64_t in_features : {136, 192}) {
        check_gated(33, int64_t{gpu().num_multiprocessors} * plan.tile_rows / 2 * 3 / 2 + more,
                    in_features, plan);
      }
    }
  }
}

// Tiles for only some blocks; one or two for each; two or three, of which the last is alone; three
// or four. Of one step and of several, more than the rings have places for.
TEST_P(LinearSkinnyTest, TilesSideBySideHaveTheBitsOfOneAfterTheOther) {
  constexpr int64_t kMostFeatures = 1088;
  const int64_t most_rows = int64_t{gpu().num_multiprocessors} * 7 / 2 * 128 + 128;
  const Buffer memory = many_weights(most_rows * kMostFeatures);
  const Tensor weights{memory.data(), activation(), DeviceType::kCuda, {most_rows * kMostFeatures}};
  const auto check_all = [&](const SkinnyPlan& plan, bool is_gated) {
    if (plan.tiles_at_once == 1) return;
    for (const int64_t half_tiles : {1, 3, 5, 7}) {
      check_side_by_side(plan, is_gated, half_tiles, 9, 72, weights);
      check_side_by_side(plan, is_gated, half_tiles, 0, 520, weights);
      check_side_by_side(plan, is_gated, half_tiles, 8, 640, weights);
      check_side_by_side(plan, is_gated, half_tiles, 0, kMostFeatures, weights);
    }
  };
  for (const SkinnyPlan& plan : kSkinnyPlans) check_all(plan, false);
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) check_all(plan, true);
}

FOR_EACH_BACKEND(LinearSkinnyTest);

}  // namespace
}  // namespace tessera

#endif
