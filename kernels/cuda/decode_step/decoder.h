// The FusedDecoder of CUDA: what the kernel of a step (decode_step/kernel.h) needs from one step to
// the next.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/cuda/decode_step/plan.h"
#include "kernels/cuda/device/gpu_traits.h"
#include "kernels/fused_decoder.h"

namespace tessera {

// The plan must run. Throws Error when memory for what the blocks exchange is short.
std::unique_ptr<FusedDecoder> make_cuda_fused_decoder(const FusedDecoderModel& model,
                                                      const FusedDecodePlan& plan,
                                                      const GpuTraits& gpu, cudaStream_t stream);

}  // namespace tessera
