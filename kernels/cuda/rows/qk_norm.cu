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
constexpr int kThreads = kWarps * kWarpSize;

struct QkvHeads {
  int64_t num_tokens;
  int num_heads;
  int num_kv_heads;
  int head_dim;

  __host__ __device__ int num_normed() const { return num_heads + num_kv_heads; }
};

// A warp per query or key head; a lane reads and writes the same elements, so that in place is
// safe. RMSNorm with weights [2, head_dim] for query heads and for key heads, or LayerNorm with
// weights [num_heads + num_kv_heads, head_dim].
template <typename Element, bool kIsLayerNorm>
__global__ void __launch_bounds__(kThreads)
    qk_norm_kernel(Element* qkv, const float* weights, QkvHeads size, float epsilon) {
  wait_for_previous_kernel();
  const int64_t index = int64_t{blockIdx.x} * kWarps + warp_index();
  const int64_t token = index / size.num_normed();
  const int head = static_cast<int>(index % size.num_normed());
  if (token >= size.num_tokens) return;
  const int64_t first_head = token * (size.num_normed() + size.num_kv_heads);
  Element* const values = qkv + (first_head + head) * size.head_dim;
  const int row_of_weights = kIsLayerNorm ? head : head < size.num_heads ? 0 : 1;
  const float* const weight = weights + row_of_weights * size.head_dim;
  const auto mean_of = [&](auto term) {
    float sum = 0.0f;
    for (int i = lane_index(); i < size.head_dim; i += kWarpSize) sum += term(as_float(values[i]));
    sum = warp_reduce(sum, [](float a, float b) { return a + b; });
    return sum / static_cast<float>(size.head_dim);
  };

  float mean = 0.0f;
  if constexpr (kIsLayerNorm) mean = mean_of([](float value) { return value; });
  const float square = mean_of([&](float value) { return (value - mean) * (value - mean); });
  const float scale = 1.0f / sqrtf(square + epsilon);
  for (int i = lane_index(); i < size.head_dim; i += kWarpSize) {
    values[i] = from_float<Element>((as_float(values[i]) - mean) * scale * weight[i]);
  }
}

// A token's queries and keys as rows: blockIdx is (token, 0 of queries and 1 of keys). A thread
// reads and writes the same elements. The order of summation depends on the row's size only.
template <typename Element>
__global__ void __launch_bounds__(kThreads)
    qk_norm_whole_kernel(Element* qkv, const float* weights, QkvHeads size, float epsilon) {
  wait_for_previous_kernel();
  const int query_size = size.num_heads * size.head_dim;
  const int key_size = size.num_kv_heads * size.head_dim;
  const int begin = blockIdx.y == 0 ? 0 : query_size;
  const int row_size = blockIdx.y == 0 ? query_size : key_size;
  Element* const values = qkv + int64_t{blockIdx.x} * (query_size + 2 * key_size) + begin;
  const float* const weight = weights + begin;

  float sum = 0.0f;
  for (int i = static_cast<int>(threadIdx.x); i < row_size; i += kThreads) {
    const float value = as_float(values[i]);
    sum += value * value;
  }
  const float scale = 1.0f / sqrtf(block_sum(sum) / static_cast<float>(row_size) + epsilon);
  for (int i = static_cast<int>(threadIdx.x); i < row_size; i += kThreads) {
    values[i] = from_float<Element>(as_float(values[i]) * scale * weight[i]);
  }
}

}  // namespace

void launch_qk_norm(const RopeStoreKvParams& params, cudaStream_t stream) {
  const QkvHeads size{.num_tokens = params.qkv.dim(0),
                      .num_heads = static_cast<int>(params.num_heads()),
                      .num_kv_heads = static_cast<int>(params.pages.num_kv_heads()),
                      .head_dim = static_cast<int>(params.pages.head_dim())};
  const int64_t num_head_blocks = ceil_divide<int64_t>(size.num_tokens * size.num_normed(), kWarps);
  const QkNorm kind = params.qk_norm_kind;
  const dim3 blocks = kind == QkNorm::kWholeProjection
                          ? dim3(static_cast<unsigned>(size.num_tokens), 2)
                          : dim3(static_cast<unsigned>(num_head_blocks));
  dispatch_element(params.qkv.dtype, [&]<typename Element>() {
    const auto kernel = kind == QkNorm::kWholeProjection    ? qk_norm_whole_kernel<Element>
                        : kind == QkNorm::kLayerNormPerHead ? qk_norm_kernel<Element, true>
                                                            : qk_norm_kernel<Element, false>;
    launch_dependent(kernel, {.blocks = blocks, .threads = kThreads}, stream,
                     static_cast<Element*>(params.qkv.data), params.qk_norm.as<float>(), size,
                     params.norm_epsilon);
  });
}

}  // namespace tessera
