#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/transfer/convert.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

template <typename Out, typename In>
__global__ void __launch_bounds__(kThreads)
    convert_kernel(Out* out, const In* in, int64_t num_elements) {
  const int64_t index = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (index < num_elements) out[index] = from_float<Out>(as_float(in[index]));
}

}  // namespace

void launch_convert(void* out, DType out_dtype, const void* in, DType in_dtype,
                    int64_t num_elements, cudaStream_t stream) {
  const auto num_blocks = static_cast<unsigned>(ceil_divide<int64_t>(num_elements, kThreads));
  dispatch_float(out_dtype, [&]<typename Out>() {
    dispatch_float(in_dtype, [&]<typename In>() {
      convert_kernel<Out, In><<<num_blocks, kThreads, 0, stream>>>(
          static_cast<Out*>(out), static_cast<const In*>(in), num_elements);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
