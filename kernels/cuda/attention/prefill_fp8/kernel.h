// Prefill attention whose products are float8_e4m3, over pages of float8_e4m3, on Hopper.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/prefill_fp8/plan.h"

namespace tessera {

// Why the kernel does not compute this layer, apart from what fp8_prefill_problem() tells; nullptr:
// it computes it.
const char* fp8_layer_problem(const AttentionParams& params);

// out as in Operations::attention, for the sequences after the batch's decodes. Queries are rounded
// to e4m3 after each row has been multiplied by a power of two, weights are rounded to e4m3;
// scores, outputs and sums are not. As many sequences at a time as fit the scratch are first
// arranged there in tiles (prefill_fp8/arrange.h) and then attended to.
// `scratch`: bytes on the device, aligned to Fp8PrefillScratch::kAlignment, at least
// fp8_prefill_scratch(limits, most_bytes).total() for limits that the step keeps. `schedule`: two
// integers on the device, 0 before the launch and 0 again afterwards.
void launch_attention_prefill_fp8(const Tensor& out, const AttentionParams& params,
                                  const Tensor& scratch, int32_t* schedule, int num_multiprocessors,
                                  cudaStream_t stream, int64_t most_bytes = kArrangedBytes);

}  // namespace tessera
