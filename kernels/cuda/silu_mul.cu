#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"
#include "kernels/cuda/silu_mul.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

template <typename Element, int kWidth>
__global__ void __launch_bounds__(kThreads)
    silu_mul_kernel(Element* out, const Element* gate_up, int64_t row_vectors,
                    int64_t num_vectors) {
  const int64_t index = blockIdx.x * static_cast<int64_t>(kThreads) + threadIdx.x;
  if (index >= num_vectors) return;
  const int64_t token = index / row_vectors;
  const int64_t gate_index = index + token * row_vectors;  // rows of gate_up are twice as long
  const auto gate = load_vector<kWidth>(gate_up, gate_index);
  const auto up = load_vector<kWidth>(gate_up, gate_index + row_vectors);
  Vector<Element, kWidth> result;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    const float x = as_float(gate.values[j]);
    result.values[j] = from_float<Element>(x / (1.0f + expf(-x)) * as_float(up.values[j]));
  }
  store_vector(out, index, result);
}

}  // namespace

void launch_silu_mul(const Tensor& out, const Tensor& gate_up, cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_vector_width(out.dim(1), [&]<int kWidth>() {
      const int64_t num_vectors = out.num_elements() / kWidth;
      const auto num_blocks = static_cast<unsigned>(ceil_divide<int64_t>(num_vectors, kThreads));
      silu_mul_kernel<Element, kWidth><<<num_blocks, kThreads, 0, stream>>>(
          static_cast<Element*>(out.data), static_cast<const Element*>(gate_up.data),
          out.dim(1) / kWidth, num_vectors);
    });
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
