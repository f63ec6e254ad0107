// A device with everything that computes on it, and how to get one.
//
//   Device (kernels/device.h)                      memory and copies
//   Operations (kernels/operations.h)              one by one: the definition
//   FusedOperations (kernels/fused_operations.h)   neighbours at once; LayerRunner
//                                                  (kernels/layer_runner.h) composes layers of them
//   FusedDecoder (kernels/fused_decoder.h)         a whole decode step at once
#pragma once

#include <memory>
#include <string>

#include "kernels/backend_limits.h"
#include "kernels/block_spec.h"
#include "kernels/cuda_status.h"
#include "kernels/device.h"
#include "kernels/fused_operations.h"
#include "kernels/kernel_choice.h"
#include "kernels/model_shape.h"
#include "kernels/operations.h"

namespace tessera {

class FusedDecoder;
struct FusedDecoderModel;
class DeviceMeasurement;

class Backend {
 public:
  virtual ~Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  virtual Device& device() = 0;
  virtual Operations& operations() = 0;
  // What the device has for layers of `block`: something faster, or the operations one by one where
  // the faster ones compute another block.
  virtual FusedOperations& fused_operations(const BlockSpec& block) = 0;

  // The sizes in which models of this shape are computed: larger ones where there are no kernels
  // for their own, or faster ones. Whoever loads weights fills them up with zeros. Throws Error
  // where there are none.
  virtual BlockSizes computed_sizes(const ModelShape& shape) const { return shape.sizes; }

  // Makes what computes a decode step of `model` at once. Returns nullptr where only the operations
  // above can, on this device or for this model; `problem` then says why, for people. The decoder
  // keeps the model's tensors, which must outlive it, as must this backend. It allocates a few MiB.
  virtual std::unique_ptr<FusedDecoder> make_fused_decoder(const FusedDecoderModel& model,
                                                           std::string& problem) = 0;
  // For benchmarks; uses this backend, which must outlive it.
  virtual std::unique_ptr<DeviceMeasurement> make_measurement() = 0;

 protected:
  Backend() = default;
};

// num_threads 0: one per physical core. All kernels are portable here.
std::unique_ptr<Backend> make_cpu_backend(int num_threads,
                                          KernelChoice choice = KernelChoice::kFastest);

// Throws Error when the GPU is absent, its architecture was not built for, or its driver too old.
// compute_dtype is kBFloat16 or kFloat16.
std::unique_ptr<Backend> make_cuda_backend(int device_index, DType compute_dtype,
                                           KernelChoice choice = KernelChoice::kFastest);

}  // namespace tessera
