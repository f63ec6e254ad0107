// Which tokens a split of decode attention reads, and where its partial result lies. Shared by the
// kernel that writes partial results and the one that merges them.
#pragma once

#include <cstdint>

#include "kernels/cuda/attention_arguments.cuh"
#include "kernels/cuda/attention_plan.h"

namespace tessera {

struct DecodeSplits {
  float* workspace;
  int num_splits;
  int split_tokens;
  int64_t num_rows;  // num_decodes * num_heads * num_splits

  DecodeSplits(const AttentionParams& params, const DecodeAttentionPlan& plan)
      : workspace(static_cast<float*>(params.workspace.data)),
        num_splits(static_cast<int>(plan.num_splits)),
        split_tokens(static_cast<int>(plan.split_tokens)),
        num_rows(params.batch.num_decodes * params.query.dim(1) * plan.num_splits) {}

  // The first token the sequence's query sees.
  __device__ static int visible_begin(const AttentionArguments& arguments, int context_length) {
    return max(0, context_length - arguments.window);
  }
  // The first token of `split`: groups of tokens never cross a page.
  __device__ int split_begin(int visible_begin, int split) const {
    return visible_begin / kGroupTokens * kGroupTokens + split * split_tokens;
  }

  __device__ int64_t row(int64_t sequence, int num_heads, int head, int split) const {
    return (sequence * num_heads + head) * num_splits + split;
  }
  __device__ float* output(int64_t row, int head_dim) const { return workspace + row * head_dim; }
  __device__ float& log_sum(int64_t row, int head_dim) const {
    return workspace[num_rows * head_dim + row];
  }
};

}  // namespace tessera
