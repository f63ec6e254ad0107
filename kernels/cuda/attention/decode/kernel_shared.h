// Decode attention in two launches where contexts share prefixes (shared_prefix.h).
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/decode/plan.h"

namespace tessera {

// As launch_attention_decode(), of a step for which reads_shared_prefixes() holds.
//   shared_plan  of the first launch, whose queries are those of a group
//   own_plan     of the second
//   rows         float32, scratch of at least shared_prefix_elements()
void launch_attention_decode_shared(const Tensor& out, const AttentionParams& params,
                                    const DecodeAttentionPlan& shared_plan,
                                    const DecodeAttentionPlan& own_plan, const Tensor& rows,
                                    uint32_t* arrivals, cudaStream_t stream);

}  // namespace tessera
