#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/activation.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/activate_mul.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kThreads = 256;

// A row of blocks per token: blockIdx is (token, part of its row).
template <Activation kActivation, typename Element, int kWidth>
__global__ void __launch_bounds__(kThreads)
    activate_mul_kernel(Element* out, const Element* gate_up, int64_t row_vectors) {
  const int64_t index = blockIdx.y * static_cast<int64_t>(kThreads) + threadIdx.x;
  const int64_t row = blockIdx.x * row_vectors;
  wait_for_previous_kernel();
  if (index >= row_vectors) return;
  const auto gate = load_vector<kWidth>(gate_up, 2 * row + index);
  const auto up = load_vector<kWidth>(gate_up, 2 * row + row_vectors + index);
  Vector<Element, kWidth> result;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    result.values[j] = from_float<Element>(activate<kActivation>(as_float(gate.values[j])) *
                                           as_float(up.values[j]));
  }
  store_vector(out, row + index, result);
}

template <Activation kActivation>
void launch(const Tensor& out, const Tensor& gate_up, cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() {
    dispatch_vector_width(out.dim(1), [&]<int kWidth>() {
      const int64_t row_vectors = out.dim(1) / kWidth;
      const dim3 blocks(static_cast<unsigned>(out.dim(0)),
                        static_cast<unsigned>(ceil_divide<int64_t>(row_vectors, kThreads)));
      launch_dependent(activate_mul_kernel<kActivation, Element, kWidth>,
                       {.blocks = blocks, .threads = kThreads}, stream,
                       static_cast<Element*>(out.data), static_cast<const Element*>(gate_up.data),
                       row_vectors);
    });
  });
}

}  // namespace

void launch_activate_mul(const Tensor& out, const Tensor& gate_up, Activation activation,
                         cudaStream_t stream) {
  switch (activation) {
    case Activation::kSilu:
      return launch<Activation::kSilu>(out, gate_up, stream);
    case Activation::kGeluTanh:
      return launch<Activation::kGeluTanh>(out, gate_up, stream);
  }
}

}  // namespace tessera
