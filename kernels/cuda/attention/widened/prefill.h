// Prefill over float8_e4m3 pages by the kernels that read 16 bits (widened/plan.h).
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/widened/plan.h"

namespace tessera {

// A prefill kernel, launched on 16-bit pages: out as in Operations::attention.
using LaunchPrefill = std::function<void(const Tensor& out, const AttentionParams& params)>;

// Widens the pages of the sequences after the batch's decodes, as many at a time as there is room
// for, and launches the kernel on them. `scratch`: bytes on the device, 256-byte aligned, at least
// widening_scratch(limits, most_bytes).total() of limits that the step keeps; params.workspace is
// not used.
void launch_widened_prefill(const Tensor& out, const AttentionParams& params, const Tensor& scratch,
                            const LaunchPrefill& launch, cudaStream_t stream,
                            int64_t most_bytes = kWidenedBytes);

}  // namespace tessera
