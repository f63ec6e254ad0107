// Decode attention where contexts share a prefix: two launches instead of one. The first reads what
// a group of decodes shares, once for all its queries, and leaves a result per query. The second
// reads the rest of each context and merges both by their log-sum-exp, as pieces of an item are
// merged.
//
// Without this, shared pages come from the L2 cache, but L2 is hardly faster than memory when every
// multiprocessor asks it. What is spared is traffic from L2. A tensor core takes 16 query rows at a
// time: one decode fills as many of them as a KV head has query heads, a group of decodes fills
// all.
#pragma once

#include <cstdint>

#include "kernels/attention_params.h"
#include "kernels/backend_limits.h"
#include "kernels/cuda/device/gpu_traits.h"

namespace tessera {

// Which tokens of the contexts a launch reads.
enum class DecodePart : uint8_t {
  kWhole,
  kShared,  // the tokens that groups share; their results are left for the next launch
  kOwn,     // the other tokens
};

// A second launch and its merges cost about what reading this many bytes does.
inline constexpr int64_t kLeastSparedBytes = int64_t{64} << 20;

// The kernels of both parts are built for 16-bit pages, heads of 128 and the copy engine.
inline bool has_shared_prefix_kernels(const GpuTraits& gpu, int64_t head_dim, KvDType kv_dtype) {
  return gpu.runs_hopper() && !gpu.is_batch_invariant() && head_dim == 128 &&
         kv_dtype == KvDType::kActivation;
}

// Whether two launches take this step. In layers with a sliding window they never do.
inline bool reads_shared_prefixes(const GpuTraits& gpu, const AttentionParams& params) {
  const KvPages& pages = params.pages;
  const KvDType kv_dtype = pages.is_fp8() ? KvDType::kFloat8E4M3 : KvDType::kActivation;
  const int64_t token_bytes = 2 * pages.num_kv_heads() * pages.head_dim() * 2;
  return params.batch.shared.num_groups > 0 &&
         params.batch.shared.spared_tokens >= kLeastSparedBytes / token_bytes && params.causal &&
         params.sliding_window == 0 && has_shared_prefix_kernels(gpu, pages.head_dim(), kv_dtype);
}

// Float32 elements that the first launch leaves: for each head of each decode an output row and its
// log2-sum-exp.
constexpr int64_t shared_prefix_elements(int64_t num_decodes, int64_t num_heads, int64_t head_dim) {
  return num_decodes * num_heads * (head_dim + 1);
}

}  // namespace tessera
