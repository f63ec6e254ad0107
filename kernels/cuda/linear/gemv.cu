#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/dispatch.h"
#include "kernels/cuda/linear/gemv.h"
#include "kernels/cuda/linear/plan.h"
#include "kernels/cuda/primitives/block_reduce.cuh"
#include "kernels/cuda/primitives/element.cuh"
#include "kernels/cuda/primitives/mma.cuh"
#include "kernels/tensor/checked_math.h"

namespace tessera {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarpSize;
constexpr int kRows = 16;
constexpr int kTokens = 8;
constexpr int kStepFeatures = 32;  // see Step
constexpr int kStepsInFlight = 4;
constexpr int kWarpFeatures = kStepFeatures * kStepsInFlight;
static_assert(kTokens == kGemvMaxTokens);

// 16 bytes of weights. They are read once, so they should not displace activations in L1.
__device__ uint4 load_weights(const void* address) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address));
  return value;
}

// What a lane holds of 32 features: 8 consecutive ones, at 8 * (lane % 4), of two weight rows and
// of one token. A product does not care in which order it sums the features as long as both
// operands agree, so the first 4 of the 8 stand in for the features that the tensor core expects in
// the lane in one step (2t, 2t + 1, 2t + 8, 2t + 9), the last 4 for those of a second step.
struct Step {
  uint4 upper_row;  // lane / 4
  uint4 lower_row;  // lane / 4 + 8
  uint4 token;      // lane / 4
};

template <typename Element>
__device__ void multiply_step(float (&sums)[4], const Step& step) {
  const uint4& upper = step.upper_row;
  const uint4& lower = step.lower_row;
  multiply_add<Element>(sums, {upper.x, lower.x, upper.y, lower.y}, step.token.x, step.token.y);
  multiply_add<Element>(sums, {upper.z, lower.z, upper.w, lower.w}, step.token.z, step.token.w);
}

// What becomes of a sum before it is stored or added.
struct AsItIs {
  __device__ float operator()(float sum, int64_t /*row*/) const { return sum; }
};
struct Affine {
  const float* bias;  // [out_features]; nullptr: none
  float multiplier;

  __device__ float operator()(float sum, int64_t row) const {
    return multiplier * (bias == nullptr ? sum : sum + bias[row]);
  }
};

template <typename Element, typename Out, bool kAccumulate, typename Epilogue>
__device__ __forceinline__ void multiply(Out* out, const Element* x, const Element* weight,
                                         int num_tokens, int64_t out_features, int in_features,
                                         const Epilogue& epilogue) {
  __shared__ float warp_sums[kWarps][kTokens][kRows];
  const int lane = lane_index();
  const int warp = warp_index();
  const int64_t first_row = static_cast<int64_t>(blockIdx.x) * kRows;

  // Past the end, weights are those of the last row or features again, and tokens are zero.
  const int64_t last_row = out_features - 1;
  const Element* upper_row = weight + min(first_row + lane / 4, last_row) * in_features;
  const Element* lower_row = weight + min(first_row + lane / 4 + 8, last_row) * in_features;
  const bool has_token = lane / 4 < num_tokens;
  const Element* token = x + (has_token ? lane / 4 : 0) * in_features;

  float sums[4] = {};
#pragma unroll 1  // more loads in flight would cost a block per multiprocessor in registers
  for (int begin = warp * kWarpFeatures; begin < in_features; begin += kWarps * kWarpFeatures) {
    Step steps[kStepsInFlight];
#pragma unroll
    for (int i = 0; i < kStepsInFlight; ++i) {
      const int feature = begin + i * kStepFeatures + lane % 4 * 8;
      const int readable = min(feature, in_features - 8);
      steps[i].upper_row = load_weights(upper_row + readable);
      steps[i].lower_row = load_weights(lower_row + readable);
      steps[i].token = has_token && feature < in_features
                           ? *reinterpret_cast<const uint4*>(token + readable)
                           : uint4{};
    }
#pragma unroll
    for (const Step& step : steps) multiply_step<Element>(sums, step);
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    warp_sums[warp][lane % 4 * 2 + i % 2][lane / 4 + i / 2 * 8] = sums[i];
  }
  __syncthreads();
  const int out_token = static_cast<int>(threadIdx.x) / kRows;
  const int64_t row = first_row + threadIdx.x % kRows;
  if (out_token >= num_tokens || row >= out_features) return;
  float sum = 0.0f;
#pragma unroll
  for (const auto& from : warp_sums) sum += from[out_token][threadIdx.x % kRows];
  sum = epilogue(sum, row);
  Out& target = out[out_token * out_features + row];
  if constexpr (kAccumulate) sum += as_float(target);
  target = from_float<Out>(sum);
}

template <typename Element, typename Out, bool kAccumulate>
__global__ void __launch_bounds__(kThreads, 3)
    linear_gemv_kernel(Out* out, const Element* x, const Element* weight, int num_tokens,
                       int64_t out_features, int in_features) {
  multiply<Element, Out, kAccumulate>(out, x, weight, num_tokens, out_features, in_features,
                                      AsItIs{});
}

// Apart from the one above, which most products take and which has nothing to do besides.
template <typename Element, typename Out, bool kAccumulate>
__global__ void __launch_bounds__(kThreads, 3)
    affine_gemv_kernel(Out* out, const Element* x, const Element* weight, int num_tokens,
                       int64_t out_features, int in_features, Affine affine) {
  multiply<Element, Out, kAccumulate>(out, x, weight, num_tokens, out_features, in_features,
                                      affine);
}

}  // namespace

void launch_linear_gemv(const Tensor& out, const Tensor& x, const WeightMatrix& weight,
                        bool accumulate, float multiplier, cudaStream_t stream) {
  const auto num_tokens = static_cast<int>(x.dim(0));
  const auto num_blocks = static_cast<unsigned>(ceil_divide<int64_t>(weight.out_features, kRows));
  CHECK(num_tokens <= kTokens, "linear_gemv: ", num_tokens, " tokens, at most ", kTokens);
  dispatch_element(x.dtype, [&]<typename Element>() {
    const auto launch = [&]<typename Out, bool kAccumulate>() {
      auto* const to = static_cast<Out*>(out.data);
      const auto* const from = static_cast<const Element*>(x.data);
      const auto* const matrix = static_cast<const Element*>(weight.data.data);
      const auto in_features = static_cast<int>(weight.in_features);
      if (weight.bias.empty() && multiplier == 1.0f) {
        linear_gemv_kernel<Element, Out, kAccumulate><<<num_blocks, kThreads, 0, stream>>>(
            to, from, matrix, num_tokens, weight.out_features, in_features);
        return;
      }
      const Affine affine{.bias = weight.bias.empty() ? nullptr : weight.bias.as<float>(),
                          .multiplier = multiplier};
      affine_gemv_kernel<Element, Out, kAccumulate><<<num_blocks, kThreads, 0, stream>>>(
          to, from, matrix, num_tokens, weight.out_features, in_features, affine);
    };
    if (accumulate) {
      launch.template operator()<float, true>();
    } else if (out.dtype == DType::kFloat32) {
      launch.template operator()<float, false>();
    } else {
      launch.template operator()<Element, false>();
    }
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
