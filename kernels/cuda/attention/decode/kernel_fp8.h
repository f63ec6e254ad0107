// Decode attention over float8_e4m3 pages.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/decode/plan.h"

namespace tessera {

// launch_attention_decode() where params.pages.is_fp8(); called by it. Throws Error naming the
// head_dim where there is no kernel.
void launch_attention_decode_fp8(const Tensor& out, const AttentionParams& params,
                                 const DecodeAttentionPlan& plan, uint32_t* arrivals,
                                 cudaStream_t stream);

}  // namespace tessera
