// Normalisation of queries and keys before they are rotated.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/rope_params.h"

namespace tessera {

// Normalises params.qkv in place by params.qk_norm, as launch_rms_norm or launch_layer_norm does
// rows: of head_dim elements, by a warp each, or of all query heads and of all key heads of a
// token, by a block each. Values stay as they are. For what launch_rope_store_kv() does not
// normalise itself. A programmatic dependent launch that reads nothing early.
void launch_qk_norm(const RopeStoreKvParams& params, cudaStream_t stream);

}  // namespace tessera
