#include <algorithm>

#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/rms_norm_add.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kMaxThreads = 512;

struct NextRows {
  __nv_bfloat16* values;
  float* squares;
  int num_parts;
  const float* weight;
};

// A block per token. The order of summation depends on hidden_size only. A row is read twice, from
// the cache the second time.
template <int kWidth, bool kHasNext>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_add_kernel(float* residual, const float* x, const float* weight, int64_t hidden_size,
                        float epsilon, float multiplier, NextRows next) {
  const int64_t num_vectors = hidden_size / kWidth;
  x += blockIdx.x * hidden_size;
  residual += blockIdx.x * hidden_size;
  wait_for_previous_kernel();

  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
#pragma unroll
    for (const float value : input.values) sum += value * value;
  }
  const float mean = block_sum(sum) / static_cast<float>(hidden_size);
  const float scale = 1.0f / sqrtf(mean + epsilon);

  float next_sum = 0.0f;
  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
    const auto factors = load_vector<kWidth>(weight, i);
    auto target = load_vector<kWidth>(residual, i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      target.values[j] += input.values[j] * scale * factors.values[j] * multiplier;
    }
    store_vector(residual, i, target);
    if constexpr (kHasNext) {
      const auto next_factors = load_vector<kWidth>(next.weight, i);
      Vector<__nv_bfloat16, kWidth> weighted;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        next_sum += target.values[j] * target.values[j];
        weighted.values[j] = from_float<__nv_bfloat16>(target.values[j] * next_factors.values[j]);
      }
      store_vector(next.values + blockIdx.x * hidden_size, i, weighted);
    }
  }
  if constexpr (kHasNext) {
    next_sum = block_sum(next_sum);
    float* const parts = next.squares + static_cast<int64_t>(blockIdx.x) * next.num_parts;
    for (int i = static_cast<int>(threadIdx.x); i < next.num_parts;
         i += static_cast<int>(blockDim.x)) {
      parts[i] = i == 0 ? next_sum : 0.0f;
    }
  }
}

template <int kWidth, bool kHasNext>
void launch(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
            float multiplier, const NextRows& next, cudaStream_t stream) {
  const int64_t hidden_size = x.dim(1);
  const int64_t num_threads = std::min<int64_t>(
      ceil_divide<int64_t>(hidden_size, kWarpSize * kWidth) * kWarpSize, kMaxThreads);
  launch_dependent(rms_norm_add_kernel<kWidth, kHasNext>,
                   {.blocks = dim3(static_cast<unsigned>(x.dim(0))),
                    .threads = static_cast<unsigned>(num_threads)},
                   stream, residual.as<float>(), x.as<float>(), weight.as<float>(), hidden_size,
                   epsilon, multiplier, next);
}

template <int kWidth>
void launch(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
            float multiplier, const NextNorm& next, cudaStream_t stream) {
  if (next.values.empty()) {
    return launch<kWidth, false>(residual, x, weight, epsilon, multiplier, NextRows{}, stream);
  }
  launch<kWidth, true>(residual, x, weight, epsilon, multiplier,
                       NextRows{.values = static_cast<__nv_bfloat16*>(next.values.data),
                                .squares = next.squares.as<float>(),
                                .num_parts = static_cast<int>(next.squares.dim(1)),
                                .weight = next.weight.as<float>()},
                       stream);
}

}  // namespace

void launch_rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight,
                         float epsilon, float multiplier, const NextNorm& next,
                         cudaStream_t stream) {
  if (x.dim(1) % 4 == 0) {
    launch<4>(residual, x, weight, epsilon, multiplier, next, stream);
  } else {
    launch<1>(residual, x, weight, epsilon, multiplier, next, stream);
  }
}

}  // namespace tessera
