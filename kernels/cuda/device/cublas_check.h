// Turns cuBLASLt status codes into Error, and DType into its name for a type.
#pragma once

#include "kernels/cuda/device/cublas_library.h"
#include "kernels/tensor/check.h"
#include "kernels/tensor/dtype.h"

namespace tessera {

inline void check_cublas(cublasStatus_t status, const char* call) {
  CHECK(status == CUBLAS_STATUS_SUCCESS,
        "the GPU's matrix library failed: ", cublas().get_status_string(status), " in ", call);
}

inline cudaDataType_t cublas_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kInt32:
    case DType::kFloat8E4M3:
      break;
  }
  throw Error(concat("no matrix product of ", to_string(dtype)));
}

}  // namespace tessera

#define CUBLAS_CHECK(call) ::tessera::check_cublas((call), #call)
