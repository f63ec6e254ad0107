#include "kernels/cuda/attention_combine.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/decode_splits.cuh"
#include "kernels/cuda/dispatch.h"
#include "kernels/cuda/element.cuh"

namespace tessera {
namespace {

// A thread per element of head_dim.
template <typename Element>
__global__ void attention_combine_kernel(const __grid_constant__ AttentionArguments arguments,
                                         const __grid_constant__ DecodeSplits splits) {
  const int head_dim = static_cast<int>(blockDim.x);
  const int column = static_cast<int>(threadIdx.x);
  const int head = blockIdx.x;
  const int sequence = blockIdx.y;
  const int context_length = arguments.context_lengths[sequence];
  const int begin = splits.split_begin(DecodeSplits::visible_begin(arguments, context_length), 0);
  const int num_splits = (context_length - begin + splits.split_tokens - 1) / splits.split_tokens;
  const int64_t first_row = splits.row(sequence, arguments.num_heads, head, 0);

  float max_log_sum = -INFINITY;
#pragma unroll 4
  for (int split = 0; split < num_splits; ++split) {
    max_log_sum = fmaxf(max_log_sum, splits.log_sum(first_row + split, head_dim));
  }
  float total = 0.0f;
  float value = 0.0f;
#pragma unroll 4
  for (int split = 0; split < num_splits; ++split) {
    const float weight = exp2f(splits.log_sum(first_row + split, head_dim) - max_log_sum);
    total += weight;
    value += weight * splits.output(first_row + split, head_dim)[column];
  }
  const int64_t token = arguments.query_starts[sequence];
  static_cast<Element*>(arguments.out)[(token * arguments.num_heads + head) * head_dim + column] =
      from_float<Element>(value / total);
}

}  // namespace

void launch_attention_combine(const Tensor& out, const AttentionParams& params,
                              const DecodeAttentionPlan& plan, cudaStream_t stream) {
  const AttentionArguments arguments = make_attention_arguments(out, params);
  const DecodeSplits splits(params, plan);
  const dim3 grid(static_cast<unsigned>(params.query.dim(1)),
                  static_cast<unsigned>(params.batch.num_decodes));
  const auto head_dim = static_cast<unsigned>(params.pages.head_dim());
  dispatch_element(out.dtype, [&]<typename Element>() {
    attention_combine_kernel<Element><<<grid, head_dim, 0, stream>>>(arguments, splits);
  });
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace tessera
