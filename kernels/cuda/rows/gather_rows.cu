#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/gather_rows.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

template <typename Float, int kWidth>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(float* out, const Float* table, const int32_t* rows, int64_t hidden_size,
                       float multiplier) {
  table += max(rows[blockIdx.x], 0) * hidden_size;
  out += blockIdx.x * hidden_size;
  for (int64_t i = threadIdx.x; i < hidden_size / kWidth; i += kThreads) {
    const auto source = load_vector<kWidth>(table, i);
    Vector<float, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) result.values[j] = multiplier * as_float(source.values[j]);
    store_vector(out, i, result);
  }
}

}  // namespace

void launch_gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows,
                        float multiplier, cudaStream_t stream) {
  const auto num_rows = static_cast<unsigned>(rows.dim(0));
  const int64_t hidden_size = table.dim(1);
  dispatch_float(table.dtype, [&]<typename Float>() {
    dispatch_vector_width(hidden_size, [&]<int kWidth>() {
      gather_rows_kernel<Float, kWidth><<<num_rows, kThreads, 0, stream>>>(
          out.as<float>(), static_cast<const Float*>(table.data), rows.as<int32_t>(), hidden_size,
          multiplier);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
