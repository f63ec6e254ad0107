// Attention over paged keys and values, tile by tile with a running softmax.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention_params.h"
#include "kernels/backend_limits.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cpu/thread_scratch.h"

namespace tessera {

// Keys of one part of a decode, for each of its queries. With few queries per sequence only the
// context can be divided among threads; how depends on the sequence alone, so that results do not
// depend on the threads. More queries get longer parts, so that partial results take no more room.
inline constexpr int64_t kPartKeys = 1024;

// out float32 [num_tokens, num_heads, head_dim]; the rest as in Operations::attention. Results do
// not depend on the number of threads, nor on the other sequences of the step; with
// `is_batch_invariant`, nor on which other tokens of its own sequence a token is computed with.
void attention(const Tensor& out, const AttentionParams& params, bool is_batch_invariant,
               ThreadScratch& scratch, ThreadPool& pool);

// Bytes of AttentionParams::workspace: what decodes over long contexts compute in parts.
size_t attention_workspace_bytes(const BackendLimits& limits);

}  // namespace tessera
