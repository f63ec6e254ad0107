// Conversion between floating-point types, for weights on their way into device memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/tensor/dtype.h"

namespace tessera {

// out[i] = in[i], rounded to nearest even; both of num_elements and 16-byte aligned.
// One thread per element: the host link that feeds it is a hundred times slower.
void launch_convert(void* out, DType out_dtype, const void* in, DType in_dtype,
                    int64_t num_elements, cudaStream_t stream);

}  // namespace tessera
