// Brings pages into the order in which the FP8 prefill kernel reads them.
//
// Tensor cores take e4m3 operands only with the elements that are multiplied with each other
// contiguous: for weights . V, the values of one dimension. So values are transposed in tiles of
// 128 tokens, [dimension][token], and within 16 tokens their order is that in which a lane holds
// the scores: place 4 t + i is token 8 (i / 2) + 2 t + i % 2. Keys go into tiles beside them, and
// what lies behind a context's end becomes 0.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/attention/arguments.cuh"
#include "kernels/cuda/attention/prefill_fp8/plan.h"

namespace tessera {

struct Fp8Arrangement {
  uint8_t* keys;    // [tile of a sequence, num_kv_heads, 128 tokens, 128]
  uint8_t* values;  // [tile of a sequence, num_kv_heads, 128, 128 tokens]
  int32_t* tables;  // [num_sequences, tiles_per_sequence]: a block table of the tiles
  int tiles_per_sequence;
};

// Arranges the pages of all sequences of `arguments`, none of which may be a decode.
void launch_arrange_fp8(const AttentionArguments& arguments, int num_sequences,
                        const Fp8Arrangement& arranged, cudaStream_t stream);

}  // namespace tessera
