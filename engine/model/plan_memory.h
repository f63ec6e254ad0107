// Making a MemoryPlan for a model on a device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/model/memory_plan.h"
#include "kernels/fused_operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

// The limits of every step on a device of this type, with a context of context_size tokens.
// `own_chunk`: prompt tokens of a step where `wanted` has no number.
StepLimits step_limits(const WantedSizes& wanted, DeviceType device, int64_t context_size,
                       int64_t own_chunk);

// Tokens of the longest context that the device's kernels take in pages of page_size tokens, a
// power of two.
int64_t longest_context(DeviceType device, int64_t page_size);

// How many KV pages to take: enough for max_sequences sequences as long as they can be, but no more
// than fit into the memory that the rest of the plan leaves, or into half of it on a host. Always
// enough for one sequence.
int64_t choose_num_pages(const MemoryPlan& plan, DeviceType device);

// How many tokens the penalties of a step may list: all tokens of one sequence, or some of each of
// many (kPenalizedTokensOfMany), whichever is more.
int64_t max_penalized_tokens(const StepLimits& limits, int64_t vocab_size);

// Chooses the context: wanted.context_size, which the model has, or when 0 the largest up to the
// model's maximum that fits. KV pages hold at least one sequence that long; max_sequences of them
// where there is memory for it, on a CPU where half of what is free is enough. Throws Error with
// the table and the --ctx-size that would fit (or that nothing fits), and for a context above
// longest_context(). `operations` are those for the model's block.
MemoryPlan plan_memory(const ModelConfig& config, const WantedSizes& wanted,
                       FusedOperations& operations, size_t weights_bytes);

}  // namespace tessera
