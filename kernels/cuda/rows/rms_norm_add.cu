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

// A block per token. The order of summation depends on hidden_size only. A row is read twice, from
// the cache the second time.
template <int kWidth>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_add_kernel(float* residual, const float* x, const float* weight, int64_t hidden_size,
                        float epsilon, float multiplier) {
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

  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
    const auto factors = load_vector<kWidth>(weight, i);
    auto target = load_vector<kWidth>(residual, i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      target.values[j] += input.values[j] * scale * factors.values[j] * multiplier;
    }
    store_vector(residual, i, target);
  }
}

template <int kWidth>
void launch(const Tensor& residual, const Tensor& x, const Tensor& weight, float epsilon,
            float multiplier, cudaStream_t stream) {
  const int64_t hidden_size = x.dim(1);
  const int64_t num_threads = std::min<int64_t>(
      ceil_divide<int64_t>(hidden_size, kWarpSize * kWidth) * kWarpSize, kMaxThreads);
  launch_dependent(rms_norm_add_kernel<kWidth>,
                   {.blocks = dim3(static_cast<unsigned>(x.dim(0))),
                    .threads = static_cast<unsigned>(num_threads)},
                   stream, residual.as<float>(), x.as<float>(), weight.as<float>(), hidden_size,
                   epsilon, multiplier);
}

}  // namespace

void launch_rms_norm_add(const Tensor& residual, const Tensor& x, const Tensor& weight,
                         float epsilon, float multiplier, cudaStream_t stream) {
  if (x.dim(1) % 4 == 0) {
    launch<4>(residual, x, weight, epsilon, multiplier, stream);
  } else {
    launch<1>(residual, x, weight, epsilon, multiplier, stream);
  }
}

}  // namespace tessera
