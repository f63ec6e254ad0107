// Prefill attention for Hopper, at the rate of its tensor cores.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/attention_params.h"

namespace tessera {

// When a launch begins.
enum class PrefillStart : uint8_t {
  kAfterPrevious,  // when the previous kernel has ended
  kWhilePrevious,  // its first tile is looked up while the previous kernel ends, which then must
                   // not write query starts, context lengths or block tables
  kBesideDecodes,  // beside the previous kernel, which is decode attention of the same step by the
                   // copy engine, on multiprocessors that it leaves out; ends after it
};

// The attention of launch_attention_prefill_sm80(), by FlashAttention-3 (Shah et al. 2024), for
// head_dim 64, 96, 128 and 256, bfloat16 or float16, page_size a multiple of 16.
//
// One block per multiprocessor takes tiles of queries of one head, those that see the most keys
// first. In a block, one warp feeds keys and values from the pages into shared memory with the copy
// engine; two or three warpgroups of 64 queries each multiply them on the tensor cores. While one
// computes its softmax, another has the tensor cores; and each starts the scores of the next keys
// before it weighs the values of these. Tile shapes and why: attention/prefill/plan.h.
//   schedule  int32 [2] on the device, zero before the first launch, left zero by each; launches
//             that share it do not overlap
//   start     see PrefillStart
void launch_attention_prefill_sm90(const Tensor& out, const AttentionParams& params,
                                   int32_t* schedule, int num_multiprocessors, PrefillStart start,
                                   cudaStream_t stream);

}  // namespace tessera
