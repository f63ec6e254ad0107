// The sizes of a model and of its steps, from which a backend says in which sizes it computes it.
#pragma once

#include <cstdint>

#include "kernels/block_sizes.h"
#include "kernels/block_spec.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

struct ModelShape {
  BlockSpec block;
  BlockSizes sizes;
  int64_t vocab_size = 0;
  int64_t page_size = 0;  // tokens
  KvDType kv_dtype = KvDType::kActivation;
  int64_t max_sequences = 0;  // of a step; 0: many
};

}  // namespace tessera
