// The ids of a step, where the step before drew them.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/tensor/tensor.h"

namespace tessera {

// ids[i] = drawn[from[i]] where from[i] >= 0; the others stay
//   all int32; ids and from [num_ids]
// An ordinary launch: it begins when all before it is complete, so that whatever begins early
// behind it finds the inputs of the step complete (kernels/operations.h, early reads).
void launch_take_ids(const Tensor& ids, const Tensor& from, const Tensor& drawn,
                     cudaStream_t stream);

}  // namespace tessera
