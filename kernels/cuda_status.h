// Whether this machine and this binary have CUDA.
#pragma once

#include <string>

namespace tessera {

// What can be said about CUDA on this machine without using it.
struct CudaStatus {
  bool built = false;   // this binary has the CUDA backend
  int num_devices = 0;  // visible GPUs
  std::string problem;  // why there is none: "no NVIDIA driver", "driver supports CUDA 12.4,
                        // need 13.0", "no visible GPU"; empty when num_devices > 0
};
CudaStatus cuda_status();

}  // namespace tessera
