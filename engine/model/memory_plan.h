// How the memory of the device is divided before the first token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/options.h"
#include "kernels/operations.h"
#include "model_loaders/model_config.h"

namespace tessera {

struct MemoryPlan {
  size_t weights_bytes = 0;
  size_t kv_bytes_per_token = 0;  // all layers, keys and values
  size_t kv_bytes = 0;            // num_pages pages
  size_t activation_bytes = 0;    // activations, logits, step inputs, attention scratch
  size_t free_bytes = 0;          // on the device before loading
  int64_t context_size = 0;       // tokens a sequence may hold
  int64_t page_size = 0;          // tokens
  int64_t num_pages = 0;
  int64_t max_sequences = 0;

  size_t total_bytes() const { return weights_bytes + kv_bytes + activation_bytes; }
  // A small table for people: weights, KV, activations, free.
  std::string table() const;
};

// The sizes that bound every step on the device under these options and context size (tokens).
BackendLimits step_limits(const ModelConfig& config, const EngineOptions& options,
                          DeviceType device, int64_t context_size);

// Chooses the context: options.context_size, which must fit (check_context_size has seen it), or
// when 0 the largest up to the model's maximum that fits. Throws Error with the table and the
// --ctx-size that would fit (or that nothing fits).
MemoryPlan plan_memory(const ModelConfig& config, const EngineOptions& options,
                       const Operations& operations, size_t weights_bytes);

}  // namespace tessera
