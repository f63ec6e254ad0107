// The kernel of a whole decode step. See decode_step/plan.h for how it divides the work and
// decode_step/exchange.cuh for how its blocks tell each other their results.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/decode_step/arguments.h"

namespace tessera {

// Shape of a launch.
struct FusedDecodeLaunch {
  int head_dim = 0;
  int num_blocks = 0;
  int shared_bytes = 0;  // dynamic
};

// One step, in one launch in which all blocks run at the same time; num_blocks is at most the
// number of multiprocessors:
//   x = embedding of the token
//   for each layer:  x += o_proj . attention(rope(qkv_proj . rms_norm(x)))
//                    x += down_proj . (silu(gate) * up),  [gate | up] = gate_up_proj . rms_norm(x)
//   logits = lm_head . rms_norm(x)
// and what FusedBlock adds to that.
// Weights are bfloat16, keys and values bfloat16 or float8_e4m3, x is float32. Steps of one token
// and of up to kFusedMaxTokens have a kernel each. Throws Error when the device refuses.
void launch_fused_decode(const FusedDecodeArguments& arguments, const FusedDecodeLaunch& launch,
                         cudaStream_t stream);

}  // namespace tessera
