#include <algorithm>

#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/layer_norm.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kMaxThreads = 512;

// A block per token. The order of summation depends on hidden_size only. A row is read three times,
// from the cache after the first.
template <typename Element, int kWidth>
__global__ void __launch_bounds__(kMaxThreads)
    layer_norm_kernel(Element* out, const float* x, const float* weight, int64_t hidden_size,
                      float epsilon) {
  const int64_t num_vectors = hidden_size / kWidth;
  const auto size = static_cast<float>(hidden_size);
  x += blockIdx.x * hidden_size;
  out += blockIdx.x * hidden_size;
  wait_for_previous_kernel();

  float sum = 0.0f;
  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
#pragma unroll
    for (const float value : input.values) sum += value;
  }
  const float mean = block_sum(sum) / size;

  // Of the distances from the mean: in the difference of two sums their digits would cancel.
  float squares = 0.0f;
  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
#pragma unroll
    for (const float value : input.values) squares += (value - mean) * (value - mean);
  }
  const float scale = 1.0f / sqrtf(block_sum(squares) / size + epsilon);

  for (int64_t i = threadIdx.x; i < num_vectors; i += blockDim.x) {
    const auto input = load_vector<kWidth>(x, i);
    const auto factors = load_vector<kWidth>(weight, i);
    Vector<Element, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      result.values[j] = from_float<Element>((input.values[j] - mean) * scale * factors.values[j]);
    }
    store_vector(out, i, result);
  }
}

template <typename Element, int kWidth>
void launch(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
            cudaStream_t stream) {
  const int64_t hidden_size = x.dim(1);
  const int64_t num_threads = std::min<int64_t>(
      ceil_divide<int64_t>(hidden_size, kWarpSize * kWidth) * kWarpSize, kMaxThreads);
  launch_dependent(layer_norm_kernel<Element, kWidth>,
                   {.blocks = dim3(static_cast<unsigned>(x.dim(0))),
                    .threads = static_cast<unsigned>(num_threads)},
                   stream, static_cast<Element*>(out.data), x.as<float>(), weight.as<float>(),
                   hidden_size, epsilon);
}

}  // namespace

void launch_layer_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                       cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() {
    if (x.dim(1) % 4 == 0) {
      launch<Element, 4>(out, x, weight, epsilon, stream);
    } else {
      launch<Element, 1>(out, x, weight, epsilon, stream);
    }
  });
}

}  // namespace tessera
