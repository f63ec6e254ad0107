// The product of gate and up for many tokens with every plan, also those that plan_gated() would
// not choose for a shape.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/linear/gated/kernel.h"
#include "tests/kernels/cuda/stream_test.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

struct GatedSizes {
  int64_t num_tokens;
  int64_t intermediate_size;
  int64_t in_features;
};

class LinearGatedTest : public HopperStreamTest {
 protected:
  void launch(const Tensor& out, const Tensor& x, const Tensor& weight, const GatedPlan& plan,
              Activation of_gate = Activation::kSilu) const {
    launch_linear_gated_sm90(out, x, weight, of_gate, plan, gpu().num_multiprocessors, stream());
  }

  // Every plan and activation.
  void check(const GatedSizes& sizes) const {
    const auto [num_tokens, intermediate_size, in_features] = sizes;
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight =
        rounded(random.normal(2 * intermediate_size * in_features, 0.05), activation());
    const DeviceTensor device_x = activations(x, {num_tokens, in_features});
    const DeviceTensor device_weight = activations(weight, {2 * intermediate_size, in_features});
    const Shape shape{num_tokens, intermediate_size};
    for (const Activation of_gate : {Activation::kSilu, Activation::kGeluTanh}) {
      const Reference expected = reference_gated_linear(x, weight, in_features, of_gate);
      for (const GatedPlan& plan : kGatedPlans) {
        SCOPED_TRACE(testing::Message()
                     << num_tokens << " tokens, " << in_features << " -> " << intermediate_size
                     << ", gated by " << (of_gate == Activation::kSilu ? "SiLU" : "GELU")
                     << ", tiles of " << plan.tile_features << ", pairs share "
                     << (plan.pair_shares == PairShares::kWeights ? "weights" : "tokens"));
        const DeviceTensor out = poisoned(backend(), activation(), shape);
        device().synchronize();
        launch(out, device_x, device_weight, plan, of_gate);
        finish();
        expect_close(host(out), expected, shape,
                     {.out = activation(),
                      .length = in_features,
                      .relative = 16.0 * unit_roundoff(DType::kFloat32)});
      }
    }
  }
};

// Tokens at the edges of a warp, a warpgroup, a tile and a pair of tiles.
TEST_P(LinearGatedTest, EveryNumberOfTokensMatchesReference) {
  for (const int64_t num_tokens : {1, 15, 17, 63, 64, 65, 127, 128, 129, 191, 193, 256, 257, 385}) {
    check({.num_tokens = num_tokens, .intermediate_size = 264, .in_features = 136});
  }
}

// Features at the edges of a vector, a group of four, a tile and a pair of tiles.
TEST_P(LinearGatedTest, EveryNumberOfFeaturesMatchesReference) {
  for (const int64_t intermediate_size : {8, 32, 88, 96, 104, 112, 120, 128, 136, 192, 224, 1000}) {
    check({.num_tokens = 130, .intermediate_size = intermediate_size, .in_features = 200});
  }
}

// Inputs of one step and less, of as many steps as a ring has places, and of more.
TEST_P(LinearGatedTest, EveryNumberOfInputsMatchesReference) {
  for (const int64_t in_features : {8, 64, 72, 256, 264, 320, 328, 1000, 2112, 4104}) {
    check({.num_tokens = 67, .intermediate_size = 96, .in_features = in_features});
  }
}

// More pairs of tiles than of multiprocessors, and more tokens than are computed in one turn, with
// and without whole tiles.
TEST_P(LinearGatedTest, BlocksTakeSeveralTiles) {
  check({.num_tokens = 2304, .intermediate_size = 1408, .in_features = 72});
  check({.num_tokens = 2100, .intermediate_size = 1416, .in_features = 72});
  check({.num_tokens = 100, .intermediate_size = 24008, .in_features = 136});
}

// One product of every plan whose blocks have several tiles and whose rings go round, for tools
// that need long for it.
TEST_P(LinearGatedTest, OneProductOfEveryPlan) {
  check({.num_tokens = 300, .intermediate_size = 8008, .in_features = 392});
}

// A token's results depend on no other token, and all plans have the same bits.
TEST_P(LinearGatedTest, BitsDependOnNeitherPlanNorOtherTokens) {
  constexpr int64_t kTokens = 300, kIntermediate = 1000, kInFeatures = 2112;
  RandomValues random(7);
  const DeviceTensor x = activations(random.normal(kTokens * kInFeatures), {kTokens, kInFeatures});
  const DeviceTensor weight = activations(random.normal(2 * kIntermediate * kInFeatures, 0.05),
                                          {2 * kIntermediate, kInFeatures});
  const auto results = [&](int64_t num_tokens, const GatedPlan& plan) {
    const DeviceTensor out = poisoned(backend(), activation(), {num_tokens, kIntermediate});
    device().synchronize();
    launch(out, x.view.slice(0, num_tokens), weight, plan);
    finish();
    return bytes_of(backend(), out);
  };
  const std::vector<uint8_t> expected = results(kTokens, kGatedPlans[0]);
  for (const GatedPlan& plan : kGatedPlans) {
    for (const int64_t num_tokens : {int64_t{1}, int64_t{65}, int64_t{200}, kTokens}) {
      SCOPED_TRACE(testing::Message() << num_tokens << " tokens, tiles of " << plan.tile_features);
      const std::vector<uint8_t> got = results(num_tokens, plan);
      ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin()));
    }
  }
}

// Queued without a wait, so that launches overlap: each reads what the one before has made.
TEST_P(LinearGatedTest, ReadsWhatTheKernelBeforeHasMade) {
  constexpr int64_t kTokens = 200, kFeatures = 1024;
  RandomValues random(8);
  const DeviceTensor first = activations(random.normal(kTokens * kFeatures), {kTokens, kFeatures});
  const DeviceTensor weight =
      activations(random.normal(2 * kFeatures * kFeatures, 0.06), {2 * kFeatures, kFeatures});
  const auto chain = [&](bool waits) {
    const DeviceTensor a = poisoned(backend(), activation(), {kTokens, kFeatures});
    const DeviceTensor b = poisoned(backend(), activation(), {kTokens, kFeatures});
    device().synchronize();
    launch(a, first, weight, kGatedPlans[0]);
    for (int i = 0; i < 6; ++i) {
      if (waits) finish();
      launch(i % 2 == 0 ? b : a, i % 2 == 0 ? a : b, weight, kGatedPlans[i]);
    }
    finish();
    return bytes_of(backend(), a);
  };
  EXPECT_EQ(chain(false), chain(true));
}

FOR_EACH_BACKEND(LinearGatedTest);

}  // namespace
}  // namespace tessera

#endif
