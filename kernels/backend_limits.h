// Sizes that bound every step of a model, so that scratch space is known at start.
#pragma once

#include <cstdint>

#include "kernels/tensor/dtype.h"

namespace tessera {

struct BackendLimits {
  int64_t max_tokens = 0;          // query tokens of a step
  int64_t max_sequences = 0;       // sequences of a step
  int64_t max_context_length = 0;  // tokens of a sequence
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  KvDType kv_dtype = KvDType::kActivation;
};

}  // namespace tessera
