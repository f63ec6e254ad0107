// Merges the splits of decode attention.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention_plan.h"

namespace tessera {

// out[i, h] = sum_s 2^(lse_s - m) * partial_s / sum_s 2^(lse_s - m),  m = max_s lse_s
// over the splits s, in order, that sequence i's context has; partial and lse as
// launch_attention_decode() left them in params.workspace. One block per sequence and head.
void launch_attention_combine(const Tensor& out, const AttentionParams& params,
                              const DecodeAttentionPlan& plan, cudaStream_t stream);

}  // namespace tessera
