// The limits of a model's steps, as kernels take them.
#pragma once

#include "engine/model/step_limits.h"
#include "kernels/backend_limits.h"
#include "model_loaders/model_config.h"

namespace tessera {

inline BackendLimits kernel_limits(const StepLimits& limits, const ModelConfig& config) {
  return {.max_tokens = limits.max_tokens,
          .max_sequences = limits.max_sequences,
          .max_context_length = limits.context_size,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .kv_dtype = limits.kv_dtype};
}

}  // namespace tessera
