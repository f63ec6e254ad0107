// The CUDA factory of a build without the CUDA backend.
#include "kernels/backend.h"

namespace tessera {

CudaStatus cuda_status() {
  return {.built = false, .num_devices = 0, .problem = "this tessera was built without CUDA"};
}

std::unique_ptr<Backend> make_cuda_backend(int /*device_index*/, DType /*compute_dtype*/,
                                           KernelChoice /*choice*/) {
  throw Error("this tessera was built without CUDA",
              "build it with 'make build' where nvcc exists");
}

}  // namespace tessera
