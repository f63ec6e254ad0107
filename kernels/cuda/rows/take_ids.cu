#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/rows/take_ids.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads)
    take_ids_kernel(int32_t* ids, const int32_t* from, const int32_t* drawn, int num_ids) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (i >= num_ids) return;
  const int32_t index = from[i];
  if (index >= 0) ids[i] = drawn[index];
}

}  // namespace

void launch_take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn,
                     cudaStream_t stream) {
  const int64_t num_ids = ids.dim(0);
  const auto num_blocks = static_cast<unsigned>(ceil_divide<int64_t>(num_ids, kThreads));
  take_ids_kernel<<<num_blocks, kThreads, 0, stream>>>(
      ids.as<int32_t>(), from.as<int32_t>(), drawn.as<int32_t>(), static_cast<int>(num_ids));
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
