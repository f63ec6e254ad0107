#include "kernels/cuda/device/gpu_traits.h"

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {

GpuTraits gpu_traits(int index, KernelChoice choice) {
  const auto attribute = [index](cudaDeviceAttr name) {
    int value = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, name, index));
    return value;
  };
  return {.index = index,
          .compute_capability = attribute(cudaDevAttrComputeCapabilityMajor) * 10 +
                                attribute(cudaDevAttrComputeCapabilityMinor),
          .num_multiprocessors = attribute(cudaDevAttrMultiProcessorCount),
          .shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
#ifdef TESSERA_HOPPER_KERNELS
          .hopper_code_built = true,
#endif
          .choice = choice};
}

}  // namespace tessera
