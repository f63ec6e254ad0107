#include "engine/make_backend.h"

#include <spdlog/spdlog.h>

#include "engine/engine.h"

namespace tessera {
namespace {

KernelChoice kernel_choice(const EngineOptions& options) {
  if (options.batch_invariant) return KernelChoice::kBatchInvariant;
  if (options.fp8_attention) return KernelChoice::kFp8Attention;
  return options.portable_kernels ? KernelChoice::kPortable : KernelChoice::kFastest;
}

}  // namespace

DeviceType chosen_device(const EngineOptions& options) {
  const bool on_cpu = options.device == DeviceChoice::kCpu ||
                      (options.device == DeviceChoice::kAuto && cuda_status().num_devices == 0);
  return on_cpu ? DeviceType::kCpu : DeviceType::kCuda;
}

std::unique_ptr<Backend> make_backend(const EngineOptions& options) {
  const KernelChoice choice = kernel_choice(options);
  if (chosen_device(options) == DeviceType::kCuda) {
    return make_cuda_backend(options.cuda_index, options.compute_dtype, choice);
  }
  if (options.fp8_attention) {
    throw Error(
        "attention in float8_e4m3 needs a GPU of compute capability 9.0, this runs on the CPU",
        "leave out --attention-dtype");
  }
  if (options.device == DeviceChoice::kAuto) {
    const CudaStatus status = cuda_status();
    if (status.built) spdlog::info("{}, using CPU", status.problem);
  }
  return make_cpu_backend(options.num_threads, choice);
}

}  // namespace tessera
