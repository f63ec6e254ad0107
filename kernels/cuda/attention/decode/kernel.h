// Attention of a few new tokens per sequence, limited by how fast keys and values are read.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/attention_params.h"
#include "kernels/cuda/attention/decode/plan.h"

namespace tessera {

// out[i, h] = sum_t softmax_t(cap(scale * query[i, h] . key[t])) * value[t]
// for the tokens i of the batch's num_decodes leading sequences, over the tokens t of the context
// that i sees (kernels/attention_params.h); zeros when it sees none.
//
// As many blocks as the plan says, one per multiprocessor at most, whatever the batch. No number
// from the host changes from step to step, so a captured CUDA graph stays right when lengths and
// block tables in device memory have changed. Each block works out its share of all tiles
// (attention/decode/partition.h). One warp of it (4 without the copy engine) fills a ring of tiles
// in shared memory that runs on across items, while 8 warps (4 for head_dim above 128) compute. All
// query rows of a KV head are computed together, 16 to a tensor-core tile, a warp per tile. If that
// leaves warps over, several warps take the same rows and divide the keys. If several blocks share
// an item, each leaves a partial result in params.workspace, float32, decode_partial_elements();
// the block that finishes last merges them, in order, so that results do not depend on timing.
//
//   arrivals   uint32 [plan.num_blocks] on the device, zero before the first and after each launch
//   limits     num_sequences * KV heads * tiles of the block tables' width below 2^31
//
// With the copy engine it is a programmatic dependent launch: it starts while the kernel before it
// in the stream ends. Until that has ended, it only guesses from lengths and block tables, and
// checks the guess afterwards. The only keys and values that it copies before are those of tokens
// before this step (KvPages says that these are older than the step). The kernel after it may begin
// once that kernel has ended, hence with the step's queries, keys and values: prefill attention of
// the same step does (attention/mixed_step.h).
void launch_attention_decode(const Tensor& out, const AttentionParams& params,
                             const DecodeAttentionPlan& plan, uint32_t* arrivals,
                             cudaStream_t stream);

}  // namespace tessera
