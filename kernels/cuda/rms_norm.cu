#include "kernels/cuda/block_reduce.cuh"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/rms_norm.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

template <typename Element, int kWidth>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel(Element* out, const float* x, const float* weight, int64_t hidden_size,
                    float epsilon) {
  const int64_t num_vectors = hidden_size / kWidth;
  x += blockIdx.x * hidden_size;
  out += blockIdx.x * hidden_size;

  float sum_of_squares = 0.0f;
  for (int64_t i = threadIdx.x; i < num_vectors; i += kThreads) {
    const auto input = load_vector<kWidth>(x, i);
#pragma unroll
    for (const float value : input.values) sum_of_squares += value * value;
  }
  const float mean = block_sum(sum_of_squares) / static_cast<float>(hidden_size);
  const float scale = 1.0f / sqrtf(mean + epsilon);

  for (int64_t i = threadIdx.x; i < num_vectors; i += kThreads) {
    const auto input = load_vector<kWidth>(x, i);
    const auto factor = load_vector<kWidth>(weight, i);
    Vector<Element, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      result.values[j] = from_float<Element>(input.values[j] * scale * factor.values[j]);
    }
    store_vector(out, i, result);
  }
}

}  // namespace

void launch_rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                     cudaStream_t stream) {
  const auto num_tokens = static_cast<unsigned>(x.dim(0));
  const int64_t hidden_size = x.dim(1);
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_vector_width(hidden_size, [&]<int kWidth>() {
      rms_norm_kernel<Element, kWidth><<<num_tokens, kThreads, 0, stream>>>(
          static_cast<Element*>(out.data), x.as<float>(), weight.as<float>(), hidden_size, epsilon);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
