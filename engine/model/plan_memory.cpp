#include "engine/model/plan_memory.h"

#include <algorithm>

#include "engine/model/kv_cache.h"
#include "engine/model/step_buffers.h"
#include "kernels/device.h"

namespace tessera {
namespace {

// The plan for one context size, whether it fits or not.
MemoryPlan plan_for(const ModelConfig& config, const WantedSizes& wanted,
                    FusedOperations& operations, size_t weights_bytes, int64_t context_size) {
  const Device& device = operations.operations().device();
  MemoryPlan plan;
  plan.weights_bytes = weights_bytes;
  plan.limits = step_limits(wanted, device.type(), context_size);
  plan.page_size = wanted.page_size;
  plan.num_pages = checked_multiply(ceil_divide(context_size, wanted.page_size),
                                    wanted.max_sequences, "KV pages");
  plan.kv_bytes_per_token =
      KvCache::bytes_per_token(config, operations.operations().activation_dtype());
  const auto num_slots =
      static_cast<size_t>(checked_multiply(plan.num_pages, wanted.page_size, "KV slots"));
  plan.kv_bytes = checked_multiply(num_slots, plan.kv_bytes_per_token, "KV cache");
  plan.activation_bytes =
      StepBuffers::size_bytes(config, plan.limits, wanted.page_size, operations);
  plan.free_bytes = device.memory().free_bytes;
  return plan;
}

// The largest context in whole pages, at most `limit` tokens, for which `fits_at` holds; 0 if none.
template <typename Predicate>
int64_t largest_context(int64_t limit, int64_t page_size, Predicate fits_at) {
  if (fits_at(limit)) return limit;
  int64_t low = 0, high = ceil_divide(limit, page_size);  // low pages fit, high pages do not
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits_at(middle * page_size) ? low : high) = middle;
  }
  return low * page_size;
}

}  // namespace

StepLimits step_limits(const WantedSizes& wanted, DeviceType device, int64_t context_size) {
  const int64_t own_chunk = device == DeviceType::kCuda ? kCudaPrefillChunk : kCpuPrefillChunk;
  const int64_t chunk = wanted.prefill_chunk > 0 ? wanted.prefill_chunk : own_chunk;
  const int64_t most_tokens =
      checked_multiply(context_size, wanted.max_sequences, "tokens of all sequences");
  return {.max_tokens = std::min(std::max(chunk, wanted.max_sequences), most_tokens),
          .max_sequences = wanted.max_sequences,
          .context_size = context_size};
}

MemoryPlan plan_memory(const ModelConfig& config, const WantedSizes& wanted,
                       FusedOperations& operations, size_t weights_bytes) {
  const int64_t limit = config.max_position_embeddings;
  const auto plan_at = [&](int64_t context_size) {
    return plan_for(config, wanted, operations, weights_bytes, context_size);
  };
  const int64_t largest = largest_context(limit, wanted.page_size,
                                          [&](int64_t context) { return plan_at(context).fits(); });
  // When nothing fits, the table of one page shows why.
  const int64_t automatic = largest > 0 ? largest : std::min(limit, wanted.page_size);
  const MemoryPlan plan = plan_at(wanted.context_size > 0 ? wanted.context_size : automatic);
  if (!plan.fits()) {
    throw Error(concat("the model does not fit in memory\n", plan.table()),
                largest > 0 ? concat("--ctx-size ", largest, " fits")
                            : "even the shortest context does not fit; a smaller model would");
  }
  return plan;
}

}  // namespace tessera
