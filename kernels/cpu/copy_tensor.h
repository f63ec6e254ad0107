// Copies between host tensors.
#pragma once

#include "kernels/tensor/tensor.h"

namespace tessera {

// destination = source, of equal shape, rounded to nearest even when the dtypes differ.
void copy_tensor(const Tensor& destination, const Tensor& source, int num_threads);

}  // namespace tessera
