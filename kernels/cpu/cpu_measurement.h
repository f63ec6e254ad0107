// How fast the CPU is, for benchmarks.
#pragma once

#include "kernels/cpu/thread_pool.h"
#include "kernels/device_measurement.h"

namespace tessera {

class CpuMeasurement final : public DeviceMeasurement {
 public:
  explicit CpuMeasurement(ThreadPool& pool) : pool_(pool) {}

  double read_bandwidth() override;
  std::vector<double> seconds(const std::function<void()>& operations,
                              int64_t repetitions) override;
  std::unique_ptr<StandardAttention> make_standard_attention() override;

 private:
  ThreadPool& pool_;
};

}  // namespace tessera
