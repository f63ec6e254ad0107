#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/gather_rows.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

template <typename Out, typename Float, int kWidth>
__global__ void __launch_bounds__(kThreads)
    gather_rows_kernel(Out* out, const Float* table, const int32_t* rows, int64_t row_size,
                       float multiplier) {
  table += max(rows[blockIdx.x], 0) * row_size;
  out += blockIdx.x * row_size;
  for (int64_t i = threadIdx.x; i < row_size / kWidth; i += kThreads) {
    const auto source = load_vector<kWidth>(table, i);
    Vector<Out, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      result.values[j] = from_float<Out>(multiplier * as_float(source.values[j]));
    }
    store_vector(out, i, result);
  }
}

}  // namespace

void launch_gather_rows(const Tensor& out, const Tensor& table, const Tensor& rows,
                        float multiplier, cudaStream_t stream) {
  const auto num_rows = static_cast<unsigned>(rows.dim(0));
  const int64_t row_size = table.dim(1);
  dispatch_float(table.dtype, [&]<typename Float>() {
    dispatch_vector_width(row_size, [&]<int kWidth>() {
      const auto gather = [&]<typename Out>(Out* gathered) {
        gather_rows_kernel<Out, Float, kWidth>
            <<<num_rows, kThreads, 0, stream>>>(gathered, static_cast<const Float*>(table.data),
                                                rows.as<int32_t>(), row_size, multiplier);
      };
      if (out.dtype == DType::kFloat32) {
        gather(out.as<float>());
      } else {
        gather(static_cast<Float*>(out.data));
      }
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
