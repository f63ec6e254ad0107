// Copies between host tensors.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor/tensor.h"

namespace tessera {

// destination = source, of equal shape, rounded to nearest even when the dtypes differ.
void copy_tensor(const Tensor& destination, const Tensor& source, ThreadPool& pool);

// The same for elements [begin, end), on the calling thread.
void copy_elements(const Tensor& destination, const Tensor& source, int64_t begin, int64_t end);

}  // namespace tessera
