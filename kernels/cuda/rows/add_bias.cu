#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/add_bias.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

// A row of blocks per token: blockIdx is (token, part of its row).
template <typename Float, int kWidth>
__global__ void __launch_bounds__(kThreads)
    add_bias_kernel(Float* out, const float* bias, float multiplier, int64_t row_vectors) {
  const int64_t index = blockIdx.y * static_cast<int64_t>(kThreads) + threadIdx.x;
  const bool is_inside = index < row_vectors;
  // Nobody writes the bias while a model runs, so it need not wait.
  const auto terms = load_vector<kWidth>(bias, is_inside ? index : 0);
  wait_for_previous_kernel();
  if (!is_inside) return;
  out += blockIdx.x * row_vectors * kWidth;
  auto values = load_vector<kWidth>(out, index);
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    values.values[j] = from_float<Float>(as_float(values.values[j]) + multiplier * terms.values[j]);
  }
  store_vector(out, index, values);
}

}  // namespace

void launch_add_bias(const Tensor& out, const Tensor& bias, float multiplier, cudaStream_t stream) {
  dispatch_float(out.dtype, [&]<typename Float>() {
    dispatch_vector_width(out.dim(1), [&]<int kWidth>() {
      const int64_t row_vectors = out.dim(1) / kWidth;
      const dim3 blocks(static_cast<unsigned>(out.dim(0)),
                        static_cast<unsigned>(ceil_divide<int64_t>(row_vectors, kThreads)));
      launch_dependent(add_bias_kernel<Float, kWidth>, {.blocks = blocks, .threads = kThreads},
                       stream, static_cast<Float*>(out.data), bias.as<float>(), multiplier,
                       row_vectors);
    });
  });
}

}  // namespace tessera
