#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

struct Cast {
  __device__ float operator()(float value) const { return value; }
};

struct Softcap {
  float cap;
  __device__ float operator()(float value) const { return cap * tanhf(value / cap); }
};

// A thread per vector; `out` may be `in`.
template <typename Function, typename Out, int kWidth>
__global__ void __launch_bounds__(kThreads)
    map_kernel(Out* out, const float* in, int64_t num_vectors, Function function) {
  const int64_t index = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  wait_for_previous_kernel();
  if (index >= num_vectors) return;
  const auto input = load_vector<kWidth>(in, index);
  Vector<Out, kWidth> result;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) result.values[j] = from_float<Out>(function(input.values[j]));
  store_vector(out, index, result);
}

template <typename Out, typename Function>
void launch(const Tensor& out, const Tensor& in, Function function, cudaStream_t stream) {
  dispatch_vector_width(in.num_elements(), [&]<int kWidth>() {
    const int64_t num_vectors = in.num_elements() / kWidth;
    const auto num_blocks = static_cast<unsigned>(ceil_divide<int64_t>(num_vectors, kThreads));
    launch_dependent(map_kernel<Function, Out, kWidth>,
                     {.blocks = dim3(num_blocks), .threads = kThreads}, stream,
                     static_cast<Out*>(out.data), in.as<float>(), num_vectors, function);
  });
}

}  // namespace

void launch_cast(const Tensor& out, const Tensor& x, cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() { launch<Element>(out, x, Cast{}, stream); });
}

void launch_softcap(const Tensor& logits, float cap, cudaStream_t stream) {
  launch<float>(logits, logits, Softcap{cap}, stream);
}

}  // namespace tessera
