#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/qk_norm.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kWarps = 8;  // of a block

struct QkvHeads {
  int64_t num_tokens;
  int num_heads;
  int num_kv_heads;
  int head_dim;

  __host__ __device__ int num_normed() const { return num_heads + num_kv_heads; }
};

// A warp per query or key head; a lane reads and writes the same elements, so that in place is
// safe.
template <typename Element>
__global__ void __launch_bounds__(kWarps* kWarpSize)
    qk_norm_kernel(Element* qkv, const float* weights, QkvHeads size, float epsilon) {
  wait_for_previous_kernel();
  const int64_t index = int64_t{blockIdx.x} * kWarps + warp_index();
  const int64_t token = index / size.num_normed();
  const int head = static_cast<int>(index % size.num_normed());
  if (token >= size.num_tokens) return;
  const int64_t first_head = token * (size.num_normed() + size.num_kv_heads);
  Element* const values = qkv + (first_head + head) * size.head_dim;
  const float* const weight = weights + (head < size.num_heads ? 0 : size.head_dim);

  float sum = 0.0f;
  for (int i = lane_index(); i < size.head_dim; i += kWarpSize) {
    const float value = as_float(values[i]);
    sum += value * value;
  }
  sum = warp_reduce(sum, [](float a, float b) { return a + b; });
  const float scale = 1.0f / sqrtf(sum / static_cast<float>(size.head_dim) + epsilon);
  for (int i = lane_index(); i < size.head_dim; i += kWarpSize) {
    values[i] = from_float<Element>(as_float(values[i]) * scale * weight[i]);
  }
}

}  // namespace

void launch_qk_norm(const Tensor& qkv, const Tensor& weights, int64_t num_heads, float epsilon,
                    cudaStream_t stream) {
  const int64_t head_dim = weights.dim(0) / 2;
  const int64_t num_kv_heads = (qkv.dim(1) / head_dim - num_heads) / 2;
  const QkvHeads size{.num_tokens = qkv.dim(0),
                      .num_heads = static_cast<int>(num_heads),
                      .num_kv_heads = static_cast<int>(num_kv_heads),
                      .head_dim = static_cast<int>(head_dim)};
  const int64_t num_blocks = ceil_divide<int64_t>(size.num_tokens * size.num_normed(), kWarps);
  dispatch_element(qkv.dtype, [&]<typename Element>() {
    launch_dependent(
        qk_norm_kernel<Element>,
        {.blocks = dim3(static_cast<unsigned>(num_blocks)), .threads = kWarps * kWarpSize}, stream,
        static_cast<Element*>(qkv.data), weights.as<float>(), size, epsilon);
  });
}

}  // namespace tessera
