// Materialised attention by cuBLASLt; see kernels/standard_attention.h.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "kernels/standard_attention.h"

namespace tessera {

// Two batched matrix products with a softmax kernel between them, all on `stream`. The heads that
// share a KV head are rows of one product, so that K and V need not be repeated. Scores and
// probabilities are rounded to the activation type, as frameworks do.
std::unique_ptr<StandardAttention> make_cublas_standard_attention(cudaStream_t stream);

}  // namespace tessera
