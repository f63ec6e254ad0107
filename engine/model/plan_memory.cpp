#include "engine/model/plan_memory.h"

#include <algorithm>
#include <limits>

#include "engine/model/kv_cache.h"
#include "engine/model/step_buffers.h"
#include "kernels/device.h"

namespace tessera {
namespace {

// A host has other uses for its memory: the KV pages of several sequences take at most this part of
// what is free.
constexpr size_t kHostPart = 2;
// And where it is left to the device how many run at a time, there are pages for one sequence as
// long as it can be, and for so many tokens of each other.
constexpr int64_t kCpuTokensOfOthers = 2048;

// Most of the memory beside the weights is for keys and values. Where it is left to the device how
// many sequences run at a time, what a step needs for them is one of so many parts at most; where
// it is left to a GPU how many prompt tokens a step has, the larger number needs one of so many.
constexpr size_t kPartsForSequences = 8;
constexpr size_t kPartsForPrefillChunk = 16;

// CUDA kernels divide positions by the page size in 32 bits (kernels/cuda/primitives/
// fast_divisor.cuh): the tokens of whole pages times the page size stay below this.
constexpr int64_t kCudaContextTimesPage = int64_t{1} << 32;

// The plan for one context size, so many sequences and steps of own_chunk prompt tokens where
// `wanted` has no number, whether it fits or not.
MemoryPlan plan_with_chunk(const ModelConfig& config, const WantedSizes& wanted,
                           FusedOperations& operations, size_t weights_bytes, int64_t context_size,
                           int64_t own_chunk) {
  const Device& device = operations.operations().device();
  MemoryPlan plan;
  plan.weights_bytes = weights_bytes;
  plan.limits = step_limits(wanted, device.type(), context_size, own_chunk);
  plan.limits.max_penalized_tokens = max_penalized_tokens(plan.limits, config.vocab_size);
  plan.page_size = wanted.page_size;
  plan.kv_bytes_per_token = KvCache::bytes_per_token(
      config, stored_dtype(wanted.kv_dtype, operations.operations().activation_dtype()));
  plan.activation_bytes =
      StepBuffers::size_bytes(config, plan.limits, wanted.page_size, operations);
  const DeviceMemory memory = device.memory();
  plan.free_bytes = memory.free_bytes;
  plan.used_bytes = memory.total_bytes - memory.free_bytes;
  plan.num_pages = choose_num_pages(plan, device.type());
  if (wanted.max_pages > 0) {
    const int64_t one_sequence = ceil_divide(context_size, wanted.page_size);
    plan.num_pages = std::min(plan.num_pages, std::max(one_sequence, wanted.max_pages));
  }
  const auto num_slots =
      static_cast<size_t>(checked_multiply(plan.num_pages, wanted.page_size, "KV slots"));
  plan.kv_bytes = checked_multiply(num_slots, plan.kv_bytes_per_token, "KV cache");
  if (wanted.kv_dtype == KvDType::kFloat8E4M3) {
    const size_t calibration_bytes = KvCache::calibration_bytes(
        config, plan.num_pages, wanted.page_size, operations.operations().activation_dtype());
    plan.kv_bytes = std::max(plan.kv_bytes, calibration_bytes);
  }
  return plan;
}

// The same with the chunk that suits the device and its memory.
MemoryPlan plan_for(const ModelConfig& config, const WantedSizes& wanted,
                    FusedOperations& operations, size_t weights_bytes, int64_t context_size) {
  const auto plan_with = [&](int64_t own_chunk) {
    return plan_with_chunk(config, wanted, operations, weights_bytes, context_size, own_chunk);
  };
  if (operations.operations().device().type() == DeviceType::kCpu) {
    return plan_with(kCpuPrefillChunk);
  }
  const MemoryPlan large = plan_with(kCudaPrefillChunk);
  return large.fits_with_activations_in_one_of(kPartsForPrefillChunk)
             ? large
             : plan_with(kCudaSmallPrefillChunk);
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

// The plan for wanted.max_sequences with the longest context that fits.
MemoryPlan plan_for_wanted(const ModelConfig& config, const WantedSizes& wanted,
                           FusedOperations& operations, size_t weights_bytes) {
  const int64_t longest =
      longest_context(operations.operations().device().type(), wanted.page_size);
  CHECK(wanted.context_size <= longest, "a context of ", counted(wanted.context_size, "token"),
        " is too long for pages of ", counted(wanted.page_size, "token"), ": on a GPU at most ",
        counted(longest, "token"));
  const int64_t limit = std::min(config.max_position_embeddings, longest);
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

// KV pages of so many sequences on a host, which has other uses for its memory: one as long as it
// can be, the others not too long.
int64_t host_pages(const WantedSizes& wanted, int64_t context_size) {
  const int64_t longest = ceil_divide(context_size, wanted.page_size);
  const int64_t others = std::min(longest, ceil_divide(kCpuTokensOfOthers, wanted.page_size));
  return longest + (wanted.max_sequences - 1) * others;
}

// As many sequences as suit the device. A context as long as a single one could have is not given
// up for company.
MemoryPlan plan_for_many(const ModelConfig& config, WantedSizes wanted, FusedOperations& operations,
                         size_t weights_bytes) {
  const DeviceType device = operations.operations().device().type();
  const int64_t max_pages = wanted.max_pages;
  wanted.max_sequences = 1;
  const MemoryPlan alone = plan_for_wanted(config, wanted, operations, weights_bytes);
  const int64_t context_size = alone.limits.context_size;
  wanted.max_sequences = device == DeviceType::kCuda ? kCudaMaxSequences : kCpuMaxSequences;
  for (; wanted.max_sequences > 1; wanted.max_sequences /= 2) {
    if (max_pages == 0 && device == DeviceType::kCpu) {
      wanted.max_pages = host_pages(wanted, context_size);
    }
    const MemoryPlan plan = plan_for(config, wanted, operations, weights_bytes, context_size);
    if (plan.fits_with_activations_in_one_of(kPartsForSequences)) return plan;
  }
  return alone;
}

}  // namespace

StepLimits step_limits(const WantedSizes& wanted, DeviceType device, int64_t context_size,
                       int64_t own_chunk) {
  const int64_t chunk = wanted.prefill_chunk > 0 ? wanted.prefill_chunk : own_chunk;
  const int64_t most_tokens =
      checked_multiply(context_size, wanted.max_sequences, "tokens of all sequences");
  const bool has_own_chunk = wanted.prefill_chunk == 0 && wanted.max_sequences > 1;
  const int64_t beside_decodes =
      device == DeviceType::kCuda ? kCudaTokensBesideDecodes : kCpuTokensBesideDecodes;
  const int64_t max_tokens = std::min(std::max(chunk, wanted.max_sequences), most_tokens);
  return {.max_tokens = max_tokens,
          .max_sequences = wanted.max_sequences,
          .context_size = context_size,
          .max_tokens_beside_decodes = has_own_chunk ? beside_decodes : 0,
          .kv_dtype = wanted.kv_dtype,
          .max_drafted_tokens = wanted.has_drafts ? std::min(kDraftedStepTokens, max_tokens) : 0};
}

int64_t longest_context(DeviceType device, int64_t page_size) {
  if (device == DeviceType::kCpu) return std::numeric_limits<int64_t>::max();
  return kCudaContextTimesPage / page_size - page_size;
}

int64_t choose_num_pages(const MemoryPlan& plan, DeviceType device) {
  const int64_t one_sequence = ceil_divide(plan.limits.context_size, plan.page_size);
  const int64_t all =
      std::min(checked_multiply(one_sequence, plan.limits.max_sequences, "KV pages"),
               std::numeric_limits<int32_t>::max() / plan.page_size);
  const size_t page_bytes = static_cast<size_t>(plan.page_size) * plan.kv_bytes_per_token;
  const size_t room = plan.unplanned_bytes() / (device == DeviceType::kCpu ? kHostPart : 1);
  return std::max(one_sequence, std::min(all, static_cast<int64_t>(room / page_bytes)));
}

int64_t max_penalized_tokens(const StepLimits& limits, int64_t vocab_size) {
  const int64_t one_sequence = std::min(limits.context_size, vocab_size);
  return std::max(one_sequence,
                  limits.max_sequences * std::min(one_sequence, kPenalizedTokensOfMany));
}

MemoryPlan plan_memory(const ModelConfig& config, const WantedSizes& wanted,
                       FusedOperations& operations, size_t weights_bytes) {
  if (wanted.max_sequences == 0) return plan_for_many(config, wanted, operations, weights_bytes);
  return plan_for_wanted(config, wanted, operations, weights_bytes);
}

}  // namespace tessera
