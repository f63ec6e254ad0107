// What decode attention over pages of e4m3 needs to know besides.
#pragma once

#include "kernels/cuda/attention/arguments.cuh"

namespace tessera {

struct Fp8DecodeArguments : AttentionArguments {
  const float* key_scales;    // [num_kv_heads]
  const float* value_scales;  // same shape
};

}  // namespace tessera
