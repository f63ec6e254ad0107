// The skinny kernel with every plan, also those that plan_linear() would not choose for a shape.
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <type_traits>

#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/linear_skinny_sm90.h"
#include "tests/kernels/for_each_backend.h"
#include "tests/kernels/random_values.h"
#include "tests/kernels/reference_ops.h"

namespace tessera {
namespace {

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, decltype(&cudaStreamDestroy)>;

class LinearSkinnyTest : public BackendTest {
 protected:
  void SetUp() override {
    BackendTest::SetUp();
    if (IsSkipped()) return;
    const BackendLimits limits{.num_heads = 8, .num_kv_heads = 2, .head_dim = 128};
    if (backend().device() != DeviceType::kCuda ||
        backend().attention_description(limits).find("wgmma") == std::string::npos) {
      GTEST_SKIP() << "kernels for Hopper only";
    }
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    stream_.reset(stream);
    CUDA_CHECK(cudaDeviceGetAttribute(&num_multiprocessors_, cudaDevAttrMultiProcessorCount, 0));
  }

  void check(int64_t num_tokens, int64_t out_features, int64_t in_features,
             const SkinnyPlan& plan) const {
    SCOPED_TRACE(testing::Message()
                 << num_tokens << " tokens, " << in_features << " -> " << out_features
                 << ", tiles of " << plan.tile_rows << " rows shared by " << plan.split);
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight = rounded(random.normal(out_features * in_features, 0.05), activation());
    const auto residual = rounded(random.normal(num_tokens * out_features), DType::kFloat32);
    const Shape shape{num_tokens, out_features};
    const DeviceTensor device_x = activations(x, {num_tokens, in_features});
    const DeviceTensor device_weight = activations(weight, {out_features, in_features});
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    const DeviceTensor sum = floats(residual, shape);
    backend().synchronize();
    for (const Tensor& target : {out.view, sum.view}) {
      launch_linear_skinny_sm90({.out = target,
                                 .x = device_x,
                                 .weight = device_weight,
                                 .accumulate = target.data == sum.view.data},
                                plan, num_multiprocessors_, stream_.get());
    }
    CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
    expect_close(host(out), reference_linear(x, weight, in_features), shape,
                 {.out = activation(), .length = in_features});
    expect_close(host(sum), reference_linear(x, weight, in_features, residual), shape,
                 {.length = in_features + 1});
  }

  void check_gated(int64_t num_tokens, int64_t out_features, int64_t in_features,
                   const SkinnyPlan& plan) const {
    SCOPED_TRACE(testing::Message() << num_tokens << " tokens, " << in_features << " -> "
                                    << out_features << ", gated, tiles of " << plan.tile_rows);
    RandomValues random(static_cast<uint64_t>(num_tokens));
    const auto x = rounded(random.normal(num_tokens * in_features), activation());
    const auto weight = rounded(random.normal(2 * out_features * in_features, 0.05), activation());
    const Shape shape{num_tokens, out_features};
    const DeviceTensor out = poisoned(backend(), activation(), shape);
    const DeviceTensor device_x = activations(x, {num_tokens, in_features});
    const DeviceTensor device_weight = activations(weight, {2 * out_features, in_features});
    backend().synchronize();
    launch_linear_skinny_sm90(
        {.out = out, .x = device_x, .weight = device_weight, .is_gated = true}, plan,
        num_multiprocessors_, stream_.get());
    CUDA_CHECK(cudaStreamSynchronize(stream_.get()));
    const Reference both = reference_linear(x, weight, in_features);
    Reference expected = reference_silu_mul(both.values, out_features);
    // |silu'| <= 1.1: errors of the gate count with `up`, errors of `up` with the activation.
    for (size_t i = 0; i < expected.values.size(); ++i) {
      const auto size = static_cast<size_t>(out_features);
      const size_t gate = i / size * 2 * size + i % size;
      const size_t up = gate + size;
      expected.magnitudes[i] = 1.1 * both.magnitudes[gate] * std::abs(both.values[up]) +
                               std::abs(both.values[gate]) * both.magnitudes[up];
    }
    expect_close(host(out), expected, shape,
                 {.out = activation(),
                  .length = in_features,
                  .relative = 16.0 * unit_roundoff(DType::kFloat32)});
  }

  Stream stream_{nullptr, cudaStreamDestroy};
  int num_multiprocessors_ = 0;
};

TEST_P(LinearSkinnyTest, EveryPlanMatchesReference) {
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    for (const int64_t num_tokens : {1, 9, 17, 64}) {
      for (const int64_t out_features : {1, 40, 129, 1000, 2056}) {
        for (const int64_t in_features : {264, 320}) {
          check(num_tokens, out_features, in_features, plan);
        }
      }
      for (const int64_t in_features : {200, 1000, 2112, 4104}) {
        check(num_tokens, 232, in_features, plan);
      }
      if (plan.split > 1) continue;
      for (const int64_t in_features : {8, 64, 72}) check(num_tokens, 264, in_features, plan);
    }
  }
}

// More tiles than multiprocessors, with and without whole pairs and quads of rows.
TEST_P(LinearSkinnyTest, BlocksTakeSeveralTiles) {
  for (const SkinnyPlan& plan : kSkinnyPlans) {
    if (plan.split > 1) continue;
    for (const int64_t more : {0, 4, 1}) {
      for (const int64_t in_features : {136, 192}) {
        check(33, int64_t{num_multiprocessors_} * plan.tile_rows * 3 / 2 + more, in_features, plan);
      }
    }
  }
}

TEST_P(LinearSkinnyTest, EveryGatedPlanMatchesReference) {
  for (const SkinnyPlan& plan : kGatedSkinnyPlans) {
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
    for (const int64_t more : {0, 4, 1}) {
      for (const int64_t in_features : {136, 192}) {
        check_gated(33, int64_t{num_multiprocessors_} * plan.tile_rows / 2 * 3 / 2 + more,
                    in_features, plan);
      }
    }
  }
}

FOR_EACH_BACKEND(LinearSkinnyTest);

}  // namespace
}  // namespace tessera

#endif
