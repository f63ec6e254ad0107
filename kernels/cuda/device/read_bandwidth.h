// The speed of light of decode: how fast this GPU reads its memory now.
#pragma once

#include <cuda_runtime_api.h>

namespace tessera {

// Bytes per second, the median of several passes over a buffer far larger than the L2 cache. Reads
// by bulk copies into shared memory where they exist (sm_90), which reach 98 % of an H200's data
// sheet where 16-byte loads reach 91 %, else by 16-byte loads. Allocates and frees the buffer.
double read_bandwidth(cudaStream_t stream);

}  // namespace tessera
