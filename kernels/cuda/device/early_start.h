// Launches a kernel that begins while its predecessor in the stream ends (programmatic dependent
// launch, sm_90). Until the kernel has called wait_for_previous_results() of
// primitives/dependent_launch.cuh, it may read only what kernels/operations.h lists under "Early
// reads", and write nothing that the predecessor may read or write. Prefill attention beside
// decodes is the exception: its predecessor lets it begin when what it reads is there, and writes
// other rows (attention/prefill/sm90.h).
#pragma once

#include <cuda_runtime.h>

#include <atomic>
#include <type_traits>

#include "kernels/cuda/device/cuda_check.h"

namespace tessera {

struct LaunchShape {
  dim3 blocks;
  unsigned threads = 0;  // per block
  size_t shared_bytes = 0;
  unsigned cluster_blocks = 1;  // more than 1 only where the GPU has clusters
  bool begins_early = true;     // false: an ordinary launch
};

// While true, every kernel is launched by itself and waits for its predecessor's end, so that
// nothing is read early and nothing recorded. For tests: an operation whose inputs break the rules
// of early reads, or a recorded step that lacks what has changed, gives other results otherwise.
inline std::atomic<bool> launches_serially = false;

// On the current device. An ordinary launch where the GPU knows no other.
template <typename... Parameters>
void launch_dependent(void (*kernel)(Parameters...), const LaunchShape& shape, cudaStream_t stream,
                      const std::type_identity_t<Parameters>&... arguments) {
  int device = 0;
  int major = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  cudaLaunchAttribute attributes[2] = {};
  unsigned num_attributes = 0;
  if (major >= 9 && shape.begins_early && !launches_serially) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster_blocks > 1) {
    cudaLaunchAttribute& attribute = attributes[num_attributes++];
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {.x = shape.cluster_blocks, .y = 1, .z = 1};
  }
  const cudaLaunchConfig_t config = {.gridDim = shape.blocks,
                                     .blockDim = dim3(shape.threads),
                                     .dynamicSmemBytes = shape.shared_bytes,
                                     .stream = stream,
                                     .attrs = attributes,
                                     .numAttrs = num_attributes};
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace tessera
