#include "kernels/backend.h"
#include "kernels/cpu/cpu_device.h"
#include "kernels/cpu/cpu_measurement.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/machine.h"
#include "kernels/fused_decoder.h"

namespace tessera {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(int num_threads, KernelChoice choice)
      : device_(num_threads), operations_(device_, choice) {}

  Device& device() override { return device_; }
  Operations& operations() override { return operations_; }
  FusedOperations& fused_operations(const BlockSpec& /*block*/) override {
    return fused_operations_;
  }
  std::unique_ptr<FusedDecoder> make_fused_decoder(const FusedDecoderModel& /*model*/,
                                                   std::string& problem) override {
    problem = "there is none on cpu";
    return nullptr;
  }
  std::unique_ptr<DeviceMeasurement> make_measurement() override {
    return std::make_unique<CpuMeasurement>(device_.pool());
  }

 private:
  CpuDevice device_;
  CpuOperations operations_;
  FusedOperations fused_operations_{operations_};  // none is faster than one by one
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(int num_threads, KernelChoice choice) {
  CHECK(num_threads >= 0, "the CPU backend cannot run on ", num_threads, " threads");
  return std::make_unique<CpuBackend>(num_threads == 0 ? count_physical_cores() : num_threads,
                                      choice);
}

}  // namespace tessera
