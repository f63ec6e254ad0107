// How long the kernels that plan_linear() chooses among take, for the products of an 8B model.
//   kernels_speed --gtest_filter='*LinearSpeed.*cuda_bf16'
#ifdef TESSERA_CUDA

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <tuple>

#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/graph_timing.h"
#include "kernels/cuda/linear/cublas.h"
#include "kernels/cuda/linear/gated/kernel.h"
#include "kernels/cuda/linear/gemv.h"
#include "kernels/cuda/linear/skinny/kernel.h"
#include "kernels/cuda/rows/activate_mul.h"
#include "tests/kernels/cuda/stream_test.h"
#include "tests/kernels/random_values.h"

namespace tessera {
namespace {

constexpr int64_t kRepetitions = 9;
constexpr int64_t kPoolElements = int64_t{3} << 29;  // 3 GiB: no cache holds what is read next
constexpr int64_t kSomeElements = int64_t{1} << 24;

struct Product {
  std::string name;
  int64_t out_features;
  int64_t in_features;
  bool accumulate;
  DType out;
};

struct Kernel {
  std::string name;
  int64_t max_tokens;
  std::function<void(const Tensor& out, const Tensor& x, const Tensor& weight, bool accumulate)>
      run;
};

class LinearSpeed : public CudaStreamTest {
 protected:
  void SetUp() override {
    CudaStreamTest::SetUp();
    if (!IsSkipped()) cublas_ = std::make_unique<CublasLinear>(false);
  }

  std::vector<Kernel> kernels() {
    std::vector<Kernel> all;
    all.push_back({"gemv", kGemvMaxTokens, [this](auto& out, auto& x, auto& weight, bool add) {
                     launch_linear_gemv(out, x, weight, add, 1.0f, stream());
                   }});
    all.push_back({"cublas", 1 << 20, [this](auto& out, auto& x, auto& weight, bool add) {
                     cublas_->run(out, x, weight, add, 1.0f, stream());
                   }});
    if (gpu().runs_hopper()) {
      all.push_back(
          {"skinny", kSkinnyMaxTokens, [this](auto& out, auto& x, auto& weight, bool add) {
             launch_skinny({.out = out, .x = x, .weight = weight, .accumulate = add});
           }});
    }
    return all;
  }

  void launch_skinny(const SkinnyProduct& product) const {
    const Tensor& out = product.out;
    const Tensor& x = product.x;
    const Tensor& weight = product.weight;
    const SkinnyPlan plan =
        product.is_gated
            ? plan_gated_skinny(x.dim(0), out.dim(1), gpu().num_multiprocessors)
            : plan_skinny({x.dim(0), weight.dim(0), weight.dim(1)}, gpu().num_multiprocessors);
    launch_linear_skinny_sm90(product, plan, gpu().num_multiprocessors, stream());
  }

  // The output projection of a layer, gate and up, down, and qkv of the next, without attention:
  // all activations lie in `some`.
  std::vector<SkinnyProduct> layer_products(int64_t num_tokens, const Tensor& some,
                                            const Tensor& residual, const Tensor& weights) const {
    int64_t used_weights = 0;
    int64_t used = 0;
    const auto weight = [&](int64_t rows, int64_t columns) {
      const int64_t begin = used_weights;
      used_weights += rows * columns;
      return weights.slice(begin, used_weights).reshape({rows, columns});
    };
    const auto rows = [&](int64_t columns) {
      const int64_t begin = used;
      used += num_tokens * columns;
      return some.slice(begin, used).reshape({num_tokens, columns});
    };
    const Tensor attention = rows(4096), normed = rows(4096), hidden = rows(14336),
                 qkv = rows(6144), norm_weight = rows(4096), squares = rows(256);
    const auto floats = [](Tensor tensor, const Shape& shape) {
      tensor.dtype = DType::kFloat32;
      tensor.shape = shape;
      return tensor;
    };
    const SkinnyNormTarget norm{.values = normed,
                                .squares = floats(squares, {num_tokens, 128}),
                                .weight = floats(norm_weight, {4096})};
    return {{.out = residual,
             .x = attention,
             .weight = weight(4096, 4096),
             .accumulate = true,
             .norm = norm},
            {.out = hidden,
             .x = normed,
             .weight = weight(28672, 4096),
             .is_gated = true,
             .x_squares = norm.squares,
             .epsilon = 1e-5f},
            {.out = residual,
             .x = hidden,
             .weight = weight(4096, 14336),
             .accumulate = true,
             .norm = norm},
            {.out = qkv,
             .x = normed,
             .weight = weight(6144, 4096),
             .x_squares = norm.squares,
             .epsilon = 1e-5f}};
  }

  // As many weights as no cache holds.
  Buffer pool_of(const Tensor& some) {
    Buffer memory =
        device().allocate(static_cast<size_t>(kPoolElements) * size_of(activation()), "weights");
    const Tensor pool{memory.data(), activation(), DeviceType::kCuda, {kPoolElements}};
    device().synchronize();
    for (int64_t begin = 0; begin < kPoolElements; begin += kSomeElements) {
      CUDA_CHECK(cudaMemcpyAsync(pool.slice(begin, begin + kSomeElements).data, some.data,
                                 some.size_bytes(), cudaMemcpyDeviceToDevice, stream()));
    }
    return memory;
  }

  // Microseconds of one product: the median over graphs of many, each with weights of its own.
  double microseconds(const Kernel& kernel, const Product& product, const Tensor& pool,
                      const Tensor& x, const Tensor& out) const {
    const int64_t elements = product.out_features * product.in_features;
    const int64_t copies = std::clamp<int64_t>((int64_t{1} << 29) / elements, 2, 24);
    std::vector<double> seconds = time_graph_replays(
        [&] {
          for (int64_t i = 0; i < copies; ++i) {
            kernel.run(out, x,
                       pool.slice(i * elements, (i + 1) * elements)
                           .reshape({product.out_features, product.in_features}),
                       product.accumulate);
          }
        },
        kRepetitions, stream());
    std::ranges::sort(seconds);
    return seconds[seconds.size() / 2] / static_cast<double>(copies) * 1e6;
  }

  std::unique_ptr<CublasLinear> cublas_;
};

TEST_P(LinearSpeed, ProductsOfAnEightBillionModel) {
  const std::vector<Product> products = {{"qkv", 6144, 4096, false, activation()},
                                         {"output", 4096, 4096, true, DType::kFloat32},
                                         {"gate and up", 28672, 4096, false, activation()},
                                         {"down", 4096, 14336, true, DType::kFloat32},
                                         {"head", 128256, 4096, false, DType::kFloat32}};
  const DeviceTensor some = activations(RandomValues(1).normal(kSomeElements), {kSomeElements});
  const Buffer memory = pool_of(some);
  const Tensor pool{memory.data(), activation(), DeviceType::kCuda, {kPoolElements}};
  for (const int64_t num_tokens : {1, 4, 8, 9, 16, 24, 32, 48, 64, 65, 128}) {
    std::printf("%lld tokens, microseconds (GB/s of weights)\n",
                static_cast<long long>(num_tokens));
    for (const Product& product : products) {
      std::printf("  %-12s", product.name.c_str());
      const DeviceTensor out = to_device(
          backend(), std::vector<double>(static_cast<size_t>(num_tokens * product.out_features)),
          product.out, {num_tokens, product.out_features});
      const Tensor x = some.view.slice(0, num_tokens * product.in_features)
                           .reshape({num_tokens, product.in_features});
      device().synchronize();
      for (const Kernel& kernel : kernels()) {
        if (num_tokens > kernel.max_tokens) continue;
        const double time = microseconds(kernel, product, pool, x, out);
        const auto bytes = static_cast<double>(product.out_features * product.in_features * 2);
        std::printf("  %s %.1f (%.0f)", kernel.name.c_str(), time, bytes / time * 1e-3);
      }
      std::printf("\n");
    }
  }
}

// The products of a layer between two attentions, one after the other and each alone.
TEST_P(LinearSpeed, LayersOfAnEightBillionModel) {
  constexpr int64_t kLayerElements =
      int64_t{4096} * 4096 + int64_t{28672} * 4096 + int64_t{4096} * 14336 + int64_t{6144} * 4096;
  constexpr int64_t kLayers = kPoolElements / kLayerElements;
  const DeviceTensor some = activations(RandomValues(1).normal(kSomeElements), {kSomeElements});
  const Buffer memory = pool_of(some);
  const Tensor pool{memory.data(), activation(), DeviceType::kCuda, {kPoolElements}};
  for (const int64_t num_tokens : {16, 32, 64}) {
    const DeviceTensor residual =
        floats(RandomValues(2).normal(num_tokens * 4096), {num_tokens, 4096});
    device().synchronize();
    const auto time = [&](const char* name, size_t begin, size_t end) {
      double bytes = 0.0;
      std::vector<double> seconds = time_graph_replays(
          [&] {
            bytes = 0.0;
            for (int64_t layer = 0; layer < kLayers; ++layer) {
              const Tensor weights =
                  pool.slice(layer * kLayerElements, (layer + 1) * kLayerElements);
              const auto products = layer_products(num_tokens, some, residual, weights);
              for (size_t i = begin; i < end; ++i) {
                launch_skinny(products[i]);
                bytes += static_cast<double>(products[i].weight.size_bytes());
              }
            }
          },
          kRepetitions, stream());
      std::ranges::sort(seconds);
      const double median = seconds[seconds.size() / 2];
      std::printf("%lld tokens, %s: %.1f us (%.0f GB/s of weights)\n",
                  static_cast<long long>(num_tokens), name,
                  median / static_cast<double>(kLayers) * 1e6, bytes / median * 1e-9);
    };
    time("a layer", 0, 4);
    time("output", 0, 1);
    time("gate and up", 1, 2);
    time("down", 2, 3);
    time("qkv", 3, 4);
  }
}

// Products whose blocks have several tiles, one after the other and side by side.
TEST_P(LinearSpeed, TilesSideBySide) {
  const DeviceTensor some = activations(RandomValues(1).normal(kSomeElements), {kSomeElements});
  const Buffer memory = pool_of(some);
  const Tensor pool{memory.data(), activation(), DeviceType::kCuda, {kPoolElements}};
  for (const int64_t num_tokens : {16, 24, 32, 40, 48, 64}) {
    const Tensor x = some.view.slice(0, num_tokens * 4096).reshape({num_tokens, 4096});
    for (const Product& product : {Product{"gate and up, gated", 28672, 4096, false, activation()},
                                   Product{"head", 128256, 4096, false, DType::kFloat32}}) {
      const bool is_gated = product.out == activation();
      const int64_t out_features = is_gated ? product.out_features / 2 : product.out_features;
      const DeviceTensor out = poisoned(backend(), product.out, {num_tokens, out_features});
      device().synchronize();
      std::printf("%lld tokens, %s, microseconds:", static_cast<long long>(num_tokens),
                  product.name.c_str());
      for (const int tiles_at_once : {1, 2, 1, 2}) {
        const Kernel kernel{
            product.name, kSkinnyMaxTokens,
            [&](const Tensor& target, const Tensor& inputs, const Tensor& weight, bool add) {
              launch_linear_skinny_sm90(
                  {.out = target,
                   .x = inputs,
                   .weight = weight,
                   .accumulate = add,
                   .is_gated = is_gated},
                  {.tile_rows = is_gated ? 112 : 128, .split = 1, .tiles_at_once = tiles_at_once},
                  gpu().num_multiprocessors, stream());
            }};
        std::printf(" %d at once %.1f", tiles_at_once, microseconds(kernel, product, pool, x, out));
      }
      std::printf("\n");
    }
  }
}

// Gate and up with their activation: the library's product and the activation one after the other,
// beside the gated product with each of its plans. Of the one in brackets, plan_gated() says that
// it is the fastest.
TEST_P(LinearSpeed, GateAndUpWithActivation) {
  if (!gpu().runs_hopper()) GTEST_SKIP() << "kernels for Hopper only";
  const DeviceTensor some = activations(RandomValues(1).normal(kSomeElements), {kSomeElements});
  const Buffer memory = pool_of(some);
  const Tensor pool{memory.data(), activation(), DeviceType::kCuda, {kPoolElements}};
  for (const auto& [name, intermediate_size, in_features] : {std::tuple{"8B", 14336, 4096},
                                                             {"1B", 8192, 2048},
                                                             {"Qwen2.5 7B", 18944, 3584},
                                                             {"Gemma 3 4B", 10240, 2560},
                                                             {"Qwen3 0.6B", 3072, 1024}}) {
    for (const int64_t num_tokens : {65, 128, 192, 256, 384, 512, 768, 1024, 2048, 8192}) {
      const DeviceTensor out = poisoned(backend(), activation(), {num_tokens, intermediate_size});
      const DeviceTensor both =
          poisoned(backend(), activation(), {num_tokens, 2 * intermediate_size});
      const Tensor x = pool.slice(0, num_tokens * in_features).reshape({num_tokens, in_features});
      device().synchronize();
      const Product product{name, 2 * intermediate_size, in_features, false, activation()};
      const auto time = [&](auto&& run) {
        return microseconds(
            {name, num_tokens,
             [&](const Tensor&, const Tensor&, const Tensor& weight, bool) { run(weight); }},
            product, pool, x, both);
      };
      const double library = time([&](const Tensor& weight) {
        cublas_->run(both, x, weight, false, 1.0f, stream());
        launch_activate_mul(out, both, Activation::kSilu, stream());
      });
      std::printf("%s, %lld tokens, microseconds: cublas and activation %.1f", name,
                  static_cast<long long>(num_tokens), library);
      const GatedPlan chosen = plan_gated(num_tokens, intermediate_size, gpu().num_multiprocessors);
      for (const GatedPlan& plan : kGatedPlans) {
        const double own = time([&](const Tensor& weight) {
          launch_linear_gated_sm90(out, x, weight, Activation::kSilu, plan,
                                   gpu().num_multiprocessors, stream());
        });
        std::printf(plan == chosen ? ", [%d %s %.1f]" : ", %d %s %.1f", plan.tile_features,
                    plan.pair_shares == PairShares::kWeights ? "weights" : "tokens", own);
      }
      std::printf("\n");
    }
  }
}

FOR_EACH_BACKEND(LinearSpeed);

}  // namespace
}  // namespace tessera

#endif
