// Turns CUDA error codes into Error.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>

#include "kernels/tensor/check.h"

namespace tessera {

inline void check_cuda(cudaError_t code, const char* call,
                       std::source_location where = std::source_location::current()) {
  if (code == cudaSuccess) [[likely]]
    return;
  // A launch error would otherwise be reported again by the next innocent call.
  cudaGetLastError();
  throw Error(concat("the GPU failed: ", cudaGetErrorString(code), " (", cudaGetErrorName(code),
                     " in ", call, ")"),
              {}, where);
}

}  // namespace tessera

#define CUDA_CHECK(call) ::tessera::check_cuda((call), #call)
