#include <algorithm>

#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/device/early_start.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/dependent_launch.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/rows/rms_norm.h"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kMaxThreads = 512;
// Vectors that a thread keeps in registers. With four values each, rows of up to 8192 are read
// once; what is longer is read again.
constexpr int kHeldVectors = 4;

template <int kWidth>
__device__ float sum_of_squares(const Vector<float, kWidth>& vector) {
  float sum = 0.0f;
#pragma unroll
  for (const float value : vector.values) sum += value * value;
  return sum;
}

template <typename Element, int kWidth>
__device__ Vector<Element, kWidth> scaled(const Vector<float, kWidth>& input, float scale,
                                          const Vector<float, kWidth>& factors) {
  Vector<Element, kWidth> result;
#pragma unroll
  for (int j = 0; j < kWidth; ++j) {
    result.values[j] = from_float<Element>(input.values[j] * scale * factors.values[j]);
  }
  return result;
}

// The other form of the result: rows without the scale, and sums of squares.
struct Squares {
  float* parts = nullptr;  // [num_tokens, num_parts]; nullptr: rows are scaled
  int num_parts = 0;
};

// The rows that are normalised: what a thread reads of them, and what it leaves there in the end.
struct Rows {
  const float* x;

  __device__ void begin_at(int64_t element) { x += element; }
  template <int kWidth>
  __device__ Vector<float, kWidth> vector(int64_t i) const {
    return load_vector<kWidth>(x, i);
  }
  template <int kWidth>
  __device__ void leave(int64_t, const Vector<float, kWidth>&) const {}
};

// Rows of the residual stream, to which the sums of a product in two parts are added. They are
// stored when all has been read, so that no load has to wait for a store.
struct SummedRows {
  static constexpr int kParts = 2;

  float* residual;
  const float* parts[kParts];
  float multiplier;

  __device__ void begin_at(int64_t element) {
    residual += element;
    for (const float*& part : parts) part += element;
  }
  template <int kWidth>
  __device__ Vector<float, kWidth> vector(int64_t i) const {
    auto sum = load_vector<kWidth>(residual, i);
    const auto first = load_vector<kWidth>(parts[0], i);
    const auto second = load_vector<kWidth>(parts[1], i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      sum.values[j] += multiplier * (first.values[j] + second.values[j]);
    }
    return sum;
  }
  template <int kWidth>
  __device__ void leave(int64_t i, const Vector<float, kWidth>& sum) const {
    store_vector(residual, i, sum);
  }
};

// A block per token. The order of summation depends on hidden_size only.
template <typename Element, int kWidth, typename Source>
__global__ void __launch_bounds__(kMaxThreads)
    rms_norm_kernel(Element* out, Source rows, const float* weight, int64_t hidden_size,
                    float epsilon, Squares squares) {
  const int64_t num_vectors = hidden_size / kWidth;
  rows.begin_at(blockIdx.x * hidden_size);
  out += blockIdx.x * hidden_size;
  const auto held_index = [](int k) { return threadIdx.x + int64_t{k} * blockDim.x; };

  // Nobody writes the weights while a model runs, so they need not wait, and x comes after.
  Vector<float, kWidth> factors[kHeldVectors];
#pragma unroll
  for (int k = 0; k < kHeldVectors; ++k) {
    if (held_index(k) < num_vectors) factors[k] = load_vector<kWidth>(weight, held_index(k));
  }
  wait_for_previous_kernel();
  Vector<float, kWidth> inputs[kHeldVectors] = {};
#pragma unroll
  for (int k = 0; k < kHeldVectors; ++k) {
    if (held_index(k) < num_vectors) inputs[k] = rows.template vector<kWidth>(held_index(k));
  }

  float sum = 0.0f;
#pragma unroll
  for (const auto& input : inputs) sum += sum_of_squares(input);
  for (int64_t i = held_index(kHeldVectors); i < num_vectors; i += blockDim.x) {
    sum += sum_of_squares(rows.template vector<kWidth>(i));
  }
  sum = block_sum(sum);
  const float mean = sum / static_cast<float>(hidden_size);
  const float scale = squares.parts == nullptr ? 1.0f / sqrtf(mean + epsilon) : 1.0f;
  for (int i = static_cast<int>(threadIdx.x); i < squares.num_parts;
       i += static_cast<int>(blockDim.x)) {
    squares.parts[static_cast<int64_t>(blockIdx.x) * squares.num_parts + i] = i == 0 ? sum : 0.0f;
  }

#pragma unroll
  for (int k = 0; k < kHeldVectors; ++k) {
    if (held_index(k) < num_vectors) {
      rows.leave(held_index(k), inputs[k]);
      store_vector(out, held_index(k), scaled<Element>(inputs[k], scale, factors[k]));
    }
  }
  for (int64_t i = held_index(kHeldVectors); i < num_vectors; i += blockDim.x) {
    const auto input = rows.template vector<kWidth>(i);
    rows.leave(i, input);
    store_vector(out, i, scaled<Element>(input, scale, load_vector<kWidth>(weight, i)));
  }
}

// Enough threads to hold the row, if there may be so many.
template <typename Element, int kWidth, typename Source>
void launch(const Tensor& out, const Source& rows, const Tensor& weight, float epsilon,
            const Squares& squares, cudaStream_t stream) {
  constexpr int64_t kWarpElements = kWarpSize * kHeldVectors * kWidth;
  const int64_t hidden_size = out.dim(1);
  const int64_t num_threads =
      std::min<int64_t>(ceil_divide(hidden_size, kWarpElements) * kWarpSize, kMaxThreads);
  launch_dependent(rms_norm_kernel<Element, kWidth, Source>,
                   {.blocks = dim3(static_cast<unsigned>(out.dim(0))),
                    .threads = static_cast<unsigned>(num_threads)},
                   stream, static_cast<Element*>(out.data), rows, weight.as<float>(), hidden_size,
                   epsilon, squares);
}

template <typename Source>
void launch(const Tensor& out, const Source& rows, const Tensor& weight, float epsilon,
            const Squares& squares, cudaStream_t stream) {
  dispatch_element(out.dtype, [&]<typename Element>() {
    if (out.dim(1) % 4 == 0) {
      launch<Element, 4>(out, rows, weight, epsilon, squares, stream);
    } else {
      launch<Element, 1>(out, rows, weight, epsilon, squares, stream);
    }
  });
}

}  // namespace

void launch_rms_norm(const Tensor& out, const Tensor& x, const Tensor& weight, float epsilon,
                     cudaStream_t stream) {
  launch(out, Rows{x.as<float>()}, weight, epsilon, {}, stream);
}

void launch_add_rms_norm(const Tensor& out, const Tensor& residual, const Tensor& parts,
                         float multiplier, const Tensor& weight, float epsilon,
                         cudaStream_t stream) {
  CHECK(parts.dim(0) == SummedRows::kParts, "parts have shape ", parts.shape);
  launch(out,
         SummedRows{.residual = residual.as<float>(),
                    .parts = {parts.as<float>(), parts.as<float>() + residual.num_elements()},
                    .multiplier = multiplier},
         weight, epsilon, {}, stream);
}

void launch_rms_norm_unscaled(const Tensor& out, const Tensor& squares, const Tensor& x,
                              const Tensor& weight, cudaStream_t stream) {
  launch(out, Rows{x.as<float>()}, weight, 0.0f,
         {.parts = squares.as<float>(), .num_parts = static_cast<int>(squares.dim(1))}, stream);
}

}  // namespace tessera
