#include "engine/model/memory_plan.h"

#include <algorithm>
#include <cstdio>

#include "engine/model/activations.h"
#include "engine/model/kv_cache.h"

namespace tessera {
namespace {

// Left to the driver, its modules, other processes, and the few megabytes that backends and the
// fused decoder allocate for themselves.
constexpr size_t kReserveBytes = size_t{256} << 20;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// The plan for one context size, whether it fits or not.
MemoryPlan plan_for(const ModelConfig& config, const EngineOptions& options,
                    const Operations& operations, size_t weights_bytes, int64_t context_size) {
  MemoryPlan plan;
  plan.weights_bytes = weights_bytes;
  plan.context_size = context_size;
  plan.page_size = options.page_size;
  plan.max_sequences = options.max_sequences;
  plan.num_pages = checked_multiply(ceil_divide(context_size, options.page_size),
                                    options.max_sequences, "KV pages");
  plan.kv_bytes_per_token = KvCache::bytes_per_token(config, operations.activation_dtype());
  const auto num_slots =
      static_cast<size_t>(checked_multiply(plan.num_pages, options.page_size, "KV slots"));
  plan.kv_bytes = checked_multiply(num_slots, plan.kv_bytes_per_token, "KV cache");
  plan.activation_bytes = Activations::size_bytes(
      config, step_limits(config, options, operations.device().type(), context_size),
      options.page_size, operations);
  plan.free_bytes = operations.device().memory().free_bytes;
  return plan;
}

bool fits(const MemoryPlan& plan) { return plan.total_bytes() + kReserveBytes <= plan.free_bytes; }

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

BackendLimits step_limits(const ModelConfig& config, const EngineOptions& options,
                          DeviceType device, int64_t context_size) {
  const int64_t own_chunk = device == DeviceType::kCuda ? kCudaPrefillChunk : kCpuPrefillChunk;
  const int64_t chunk = options.prefill_chunk > 0 ? options.prefill_chunk : own_chunk;
  const int64_t most_tokens =
      checked_multiply(context_size, options.max_sequences, "tokens of all sequences");
  return {.max_tokens = std::min(std::max(chunk, options.max_sequences), most_tokens),
          .max_sequences = options.max_sequences,
          .max_context_length = context_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim};
}

MemoryPlan plan_memory(const ModelConfig& config, const EngineOptions& options,
                       const Operations& operations, size_t weights_bytes) {
  const int64_t limit = config.max_position_embeddings;
  const int64_t wanted = options.context_size;
  const auto plan_at = [&](int64_t context_size) {
    return plan_for(config, options, operations, weights_bytes, context_size);
  };
  const int64_t largest = largest_context(limit, options.page_size,
                                          [&](int64_t context) { return fits(plan_at(context)); });
  // When nothing fits, the table of one page shows why.
  const int64_t automatic = largest > 0 ? largest : std::min(limit, options.page_size);
  const MemoryPlan plan = plan_at(wanted > 0 ? wanted : automatic);
  if (!fits(plan)) {
    throw Error(concat("the model does not fit in memory\n", plan.table()),
                largest > 0 ? concat("--ctx-size ", largest, " fits")
                            : "even the shortest context does not fit; a smaller model would");
  }
  return plan;
}

std::string MemoryPlan::table() const {
  const auto row = [](const char* name, size_t bytes, const std::string& note) {
    char line[160];
    std::snprintf(line, sizeof(line), "  %-12s %9.3f GiB  %s\n", name,
                  static_cast<double>(bytes) / kGiB, note.c_str());
    return std::string(line);
  };
  return row("weights", weights_bytes, "") +
         row("KV cache", kv_bytes,
             concat(max_sequences, " x ", counted(context_size, "token"), ", ",
                    counted(kv_bytes_per_token, "byte"), " each, ", counted(num_pages, "page"),
                    " of ", page_size)) +
         row("activations", activation_bytes, "") + row("together", total_bytes(), "") +
         row("free", free_bytes, concat(kReserveBytes >> 20, " MiB of it stay in reserve"));
}

}  // namespace tessera
