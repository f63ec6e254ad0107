#include <string>

#include "kernels/cuda/device/check.h"
#include "kernels/cuda/device/cuda_check.h"
#include "kernels/cuda/device/problems.h"
#include "kernels/cuda_status.h"

namespace tessera {
namespace {

// Exists to be asked whether the binary has an image of it for a device.
__global__ void probe_kernel() {}

// "sm_80, sm_90", from the list the compiler was given.
std::string built_architectures() {
  std::string list;
  for (const int architecture : {__CUDA_ARCH_LIST__}) {
    list += concat(list.empty() ? "" : ", ", "sm_", architecture / 10);
  }
  return list;
}

std::string describe_missing_gpu(cudaError_t code) {
  int driver_version = 0;
  CUDA_CHECK(cudaDriverGetVersion(&driver_version));
  if (code == cudaSuccess || code == cudaErrorNoDevice || code == cudaErrorInsufficientDriver) {
    return missing_gpu_problem(code == cudaErrorInsufficientDriver, driver_version, CUDART_VERSION);
  }
  return concat(cudaGetErrorString(code), " (", cudaGetErrorName(code), ")");
}

}  // namespace

CudaStatus cuda_status() {
  CudaStatus status;
  status.built = true;
  const cudaError_t code = cudaGetDeviceCount(&status.num_devices);
  if (code != cudaSuccess) {
    cudaGetLastError();
    status.num_devices = 0;
  }
  if (status.num_devices == 0) status.problem = describe_missing_gpu(code);
  return status;
}

void select_device(int index) {
  const CudaStatus status = cuda_status();
  CHECK(status.num_devices > 0, "CUDA cannot be used: ", status.problem);
  CHECK(index >= 0 && index < status.num_devices, gpu_index_problem(index, status.num_devices));
  CUDA_CHECK(cudaSetDevice(index));
  cudaFuncAttributes attributes;
  const cudaError_t code = cudaFuncGetAttributes(&attributes, probe_kernel);
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    throw Error(gpu_architecture_problem(properties.name, properties.major, properties.minor,
                                         built_architectures()));
  }
  CUDA_CHECK(code);
}

}  // namespace tessera
