#include <algorithm>
#include <numbers>

#include "kernels/cuda/attention/standard/masked_softmax.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/element.cuh"

namespace tessera {
namespace {

constexpr int kWidth = 8;             // elements of a 16-byte load
constexpr int kVectorsPerThread = 4;  // of the longest row that the largest block reads at once
constexpr float kNoScore = -1e30f;    // below every score, and its differences are finite

struct SoftmaxArguments {
  int64_t query_length;
  int64_t context_length;
  bool causal;
  int64_t window;       // keys a query sees; 0: all
  float softcap_scale;  // scale / softcap; 0: no softcap
  float scale_log2;     // log2(e) times softcap if there is one, else times scale

  // The score's exponent to base 2.
  __device__ float exponent(float score) const {
    return softcap_scale == 0.0f ? score * scale_log2 : tanhf(score * softcap_scale) * scale_log2;
  }
};

// The largest exponent seen and the sum of 2^(exponent - largest).
struct RunningSum {
  float largest = kNoScore;
  float sum = 0.0f;

  __device__ void add(float exponent) {
    const float larger = fmaxf(largest, exponent);
    sum = sum * exp2f(largest - larger) + exp2f(exponent - larger);
    largest = larger;
  }
};

template <typename Element>
__global__ void masked_softmax_kernel(Element* scores, SoftmaxArguments arguments) {
  const int64_t row = blockIdx.x;
  const int64_t query = row % arguments.query_length;
  const int64_t end = arguments.causal
                          ? arguments.context_length - arguments.query_length + query + 1
                          : arguments.context_length;
  const int64_t begin = arguments.window == 0 ? 0 : max(int64_t{0}, end - arguments.window);
  Element* const values = scores + row * arguments.context_length;

  RunningSum mine;
  for (int64_t i = begin / kWidth + threadIdx.x; i * kWidth < end; i += blockDim.x) {
    const auto vector = load_vector<kWidth>(values, i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const int64_t key = i * kWidth + j;
      if (key >= begin && key < end) mine.add(arguments.exponent(as_float(vector.values[j])));
    }
  }
  const float largest = block_reduce(mine.largest, [](float a, float b) { return fmaxf(a, b); });
  const float sum = block_sum(mine.sum * exp2f(mine.largest - largest));
  const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;

  for (int64_t i = threadIdx.x; i * kWidth < arguments.context_length; i += blockDim.x) {
    const bool is_hidden = (i + 1) * kWidth <= begin || i * kWidth >= end;
    Vector<Element, kWidth> vector = {};
    if (!is_hidden) vector = load_vector<kWidth>(values, i);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const int64_t key = i * kWidth + j;
      float probability = 0.0f;
      if (key >= begin && key < end) {
        probability = exp2f(arguments.exponent(as_float(vector.values[j])) - largest) * inverse;
      }
      vector.values[j] = from_float<Element>(probability);
    }
    store_vector(values, i, vector);
  }
}

// As many threads as read the row in kVectorsPerThread loads each: an SM's blocks then hold rows of
// 128 KB together whatever the length, which is little enough for the second read to hit the L2.
unsigned threads_for(int64_t context_length) {
  constexpr int64_t kMinThreads = 128;
  constexpr int64_t kMaxThreads = 1024;
  const int64_t threads = context_length / (kWidth * kVectorsPerThread);
  return static_cast<unsigned>(
      std::clamp(threads / kWarpSize * kWarpSize, kMinThreads, kMaxThreads));
}

}  // namespace

void launch_masked_softmax(const Tensor& scores, const StandardAttentionParams& params,
                           cudaStream_t stream) {
  const int64_t context_length = params.keys.dim(2);
  CHECK(context_length % kWidth == 0, "standard attention: a context of ", context_length,
        " tokens is not a multiple of ", kWidth);
  const float log2_e = std::numbers::log2e_v<float>;
  const SoftmaxArguments arguments{
      .query_length = params.query.dim(2),
      .context_length = context_length,
      .causal = params.causal,
      .window = params.sliding_window,
      .softcap_scale = params.softcap > 0.0f ? params.scale / params.softcap : 0.0f,
      .scale_log2 = (params.softcap > 0.0f ? params.softcap : params.scale) * log2_e,
  };
  const auto num_rows = static_cast<unsigned>(scores.num_elements() / context_length);
  dispatch_element(scores.dtype, [&]<typename Element>() {
    masked_softmax_kernel<<<num_rows, threads_for(context_length), 0, stream>>>(
        static_cast<Element*>(scores.data), arguments);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
