#include <string>

#include "kernels/backend.h"
#include "kernels/cuda/cuda_check.h"
#include "kernels/cuda/device_check.h"

namespace tessera {
namespace {

// Exists to be asked whether the binary has an image of it for a device.
__global__ void probe_kernel() {}

std::string format_version(int version) { return concat(version / 1000, '.', version % 1000 / 10); }

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
  if (code == cudaErrorInsufficientDriver && driver_version == 0) return "no NVIDIA driver";
  if (code == cudaErrorInsufficientDriver) {
    // A driver runs every minor version of its major version.
    return concat("driver supports CUDA ", format_version(driver_version), ", need ",
                  CUDART_VERSION / 1000, ".0");
  }
  if (code == cudaSuccess || code == cudaErrorNoDevice) return "no visible GPU";
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
  CHECK(index >= 0 && index < status.num_devices, "there is no GPU ", index, "; valid are 0 to ",
        status.num_devices - 1);
  CUDA_CHECK(cudaSetDevice(index));
  cudaFuncAttributes attributes;
  const cudaError_t code = cudaFuncGetAttributes(&attributes, probe_kernel);
  if (code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidDeviceFunction) {
    cudaGetLastError();
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    throw Error(concat("GPU '", properties.name, "' sm_", properties.major, properties.minor,
                       " not supported; built for ", built_architectures()));
  }
  CUDA_CHECK(code);
}

}  // namespace tessera
